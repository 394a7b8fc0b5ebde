#pragma once

// Launches that begin before the one before them has ended.

#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}
inline int num_multiprocessors() {
  static const int count = device_attribute(cudaDevAttrMultiProcessorCount);
  return count;
}

/// Launches a kernel whose first reads are of weights. It may begin before the one before it has
/// ended, unless that one may write them, and calls wait_for_previous before it touches what others
/// read or write. On Hopper alone: what runs elsewhere, on newer GPUs too, does not wait.
template <typename Kernel, typename... Args>
void launch_early(bool may_begin, Kernel kernel, dim3 grid, int threads, std::size_t bytes,
                  Stream* stream, const Args&... args) {
  static const bool can_begin = device_attribute(cudaDevAttrComputeCapabilityMajor) == 9;
  if (bytes > std::size_t{48} << 10)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = bytes;
  config.stream = stream_of(stream);
  config.attrs = &early;
  config.numAttrs = may_begin && can_begin ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, args...);
}
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

}  // namespace lathe::engine::cuda
