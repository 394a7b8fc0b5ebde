// What clang leaves to CUDA's own headers and our device code uses. It is included before a .cu
// file that is compiled where no CUDA toolkit is installed.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

__device__ inline int __clz(int value) {
  return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}
#include <__clang_cuda_builtin_vars.h>
