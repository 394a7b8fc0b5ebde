#pragma once

#include <array>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"

namespace lathe::engine {

/// Arrays that are read before long, four at most, asked for part by part while something else is
/// done.
class LinesAhead {
 public:
  void add(const void* from, std::int64_t bytes) {
    if (from == nullptr || bytes <= 0) return;
    arrays_[count_++] = {static_cast<const char*>(from), bytes};
  }
  /// Asks for part `part` of `parts` of each.
  void ask(std::int64_t part, std::int64_t parts) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const auto [from, bytes] = arrays_[i];
      const std::int64_t lines = (bytes + kLine - 1) / kLine;
      for (std::int64_t line = part * lines / parts; line < (part + 1) * lines / parts; ++line)
        ask_to_read(from + line * kLine);
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  struct Array {
    const char* from;
    std::int64_t bytes;
  };
  std::array<Array, 4> arrays_{};
  std::size_t count_ = 0;
};

}  // namespace lathe::engine
