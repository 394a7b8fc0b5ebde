#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::hardware {

/// What one signal did: at each time its new bits, the highest first.
struct VcdSignal {
  std::string name;
  int width = 1;
  std::vector<std::pair<std::int64_t, std::string>> changes;
};

/// The signals of a value change dump, as a simulator records them.
struct VcdFile {
  std::vector<VcdSignal> signals;
  std::int64_t end = 0;  ///< the last time

  /// The first signal of that name, in the outermost scope that has one; nullptr where none is.
  const VcdSignal* find(std::string_view name) const;
};

/// Reads the text of a .vcd file; fails naming the line that is none.
VcdFile parse_vcd(std::string_view text);

}  // namespace lathe::hardware
