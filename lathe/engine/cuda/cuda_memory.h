#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lathe/engine/cuda/cuda_library.h"

namespace lathe::engine {

/// Memory of the GPU, or of the host where the GPU can copy from it at full speed.
class CudaBuffer {
 public:
  enum class Place { Device, Pinned };
  explicit CudaBuffer(Place place = Place::Device) : place_(place) {}
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  CudaBuffer(CudaBuffer&& other) noexcept
      : place_(other.place_),
        memory_(std::exchange(other.memory_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  CudaBuffer& operator=(CudaBuffer&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~CudaBuffer() { release(); }

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::int64_t size() const { return size_; }
  /// Makes room for at least `bytes`; what was there is lost if it has to grow. Gives the old
  /// memory back before it asks for more.
  void reserve(std::int64_t bytes) {
    if (bytes <= size_) return;
    release();
    const cuda::Device& device = cuda_library().kernels->device;
    check_cuda(place_ == Place::Device ? device.allocate(bytes, &memory_)
                                       : device.allocate_pinned(bytes, &memory_));
    size_ = bytes;
  }

 private:
  void release() {
    if (memory_ == nullptr) return;
    const cuda::Device& device = cuda_library().kernels->device;
    if (place_ == Place::Device)
      device.release(memory_);
    else
      device.release_pinned(memory_);
    memory_ = nullptr;
    size_ = 0;
  }

  Place place_;
  void* memory_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace lathe::engine
