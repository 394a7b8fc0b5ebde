#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace lathe::engine {

/// Uninitialised memory on a cache line, for arenas, scratch and packed weights.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::int64_t bytes)
      : memory_(
            static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kAlignment))),
        size_(bytes) {}

  std::byte* data() const { return memory_.get(); }
  float* floats() const { return reinterpret_cast<float*>(memory_.get()); }
  std::int64_t size() const { return size_; }
  /// Makes room for at least `bytes`; what was there is lost if it has to grow.
  void reserve(std::int64_t bytes) {
    if (bytes > size_) *this = AlignedBuffer(bytes);
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t size_ = 0;
};

}  // namespace lathe::engine
