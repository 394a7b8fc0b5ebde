#pragma once

// Numbers as the products of each precision see them, and the tensor cores' product of small tiles.

#include <cuda_bf16.h>

#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {

__device__ inline std::uint32_t bits_of(float value) {
  return __float_as_uint(value);
}

/// To ten bits after the leading one, ties away from zero as the hardware has it.
__device__ inline std::uint32_t to_tf32(float value) {
  std::uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

/// Sixteen bytes into shared memory without passing through a thread's registers, or zeros.
__device__ inline void copy_async(void* to, const void* from, bool is_there = true) {
  const auto place = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
               "r"(is_there ? 16 : 0)
               : "memory");
}
/// The same to an address in shared memory: the first `bytes` of sixteen, and zeros.
__device__ inline void copy_async(std::uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
/// Ends a group of copies; waits until all but the last `Pending` groups have come.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Pending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// Ties to even.
__device__ inline float round_to_bf16(float value) {
  return __bfloat162float(__float2bfloat16_rn(value));
}

__device__ inline std::uint16_t bf16_bits(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

/// Two neighbours along k: the first in the low half.
__device__ inline std::uint32_t to_bf16_pair(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// What a float of an operand counts as.
template <Precision P>
__device__ float seen(float value) {
  if constexpr (P == Precision::Bf16) return round_to_bf16(value);
  if constexpr (P == Precision::Tf32) return __uint_as_float(to_tf32(value));
  return value;
}

/// c[16, 8] += a[16, 8] . b[8, 8] of TF32, spread over a warp as PTX has it for m16n8k8.
__device__ inline void multiply_tf32(float* c, const std::uint32_t* a, const std::uint32_t* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// c[16, 8] += a[16, 16] . b[16, 8] of bfloat16, as PTX has it for m16n8k16.
__device__ inline void multiply_bf16(float* c, const std::uint32_t* a, const std::uint32_t* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace lathe::engine::cuda
