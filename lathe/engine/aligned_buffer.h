#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lathe/core/memory.h"

namespace lathe::engine {

/// Uninitialised memory on a cache line, for arenas, scratch and packed weights.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::int64_t bytes)
      : memory_(allocate_memory(static_cast<std::size_t>(bytes)),
                Free{static_cast<std::size_t>(bytes)}),
        size_(bytes) {}

  std::byte* data() const { return memory_.get(); }
  float* floats() const { return reinterpret_cast<float*>(memory_.get()); }
  std::int64_t size() const { return size_; }
  /// Makes room for at least `bytes`; what was there is lost if it has to grow.
  void reserve(std::int64_t bytes) {
    if (bytes > size_) *this = AlignedBuffer(bytes);
  }

 private:
  struct Free {
    std::size_t bytes;
    void operator()(std::byte* memory) const { free_memory(memory, bytes); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t size_ = 0;
};

}  // namespace lathe::engine
