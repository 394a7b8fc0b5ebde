#pragma once

// What the products with packed weights share: scales, terms of activations, what becomes of a sum.

#include "lathe/engine/cuda/kernels/early_launch.cuh"
#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/packed_codes.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {

/// Few rows by codes of any kind.
void packed_tiles(const PackedLinearArgs& args, Stream* stream);
/// Rows as MXINT8 codes by such codes.
void packed_integers(const PackedLinearArgs& args, Stream* stream);

/// The bits of a scale, which scale_of makes a float.
__device__ inline Word load_scale(const PackedScales& scales, std::int64_t index) {
  if (scales.from == nullptr) return 0x3f800000;  // 1
  if (scales.are_exponents) return __ldg(static_cast<const std::uint8_t*>(scales.from) + index);
  return __ldg(static_cast<const Word*>(scales.from) + index);
}
/// SharedExponent::scale without a branch: 0 is the subnormal 2^-127, and 255, whose bits are
/// infinity's, becomes NaN.
__device__ inline float exponent_scale(Word code, float step) {
  const float scale = __uint_as_float(max(code << 23, Word{0x00400000}));
  return fmaf(scale, 0.0f, scale * step);
}
__device__ inline float scale_of(const PackedScales& scales, Word bits) {
  if (scales.are_exponents) return exponent_scale(bits, scales.step);
  const float scale = __uint_as_float(bits);
  return (scales.to_power_of_two ? nearest_power_of_two(scale) : scale) * scales.step;
}

/// 128 + a zero point, twice.
__device__ inline Word zero_pair(float zero) {
  return Word{__bfloat16_as_ushort(__float2bfloat16_rn(128.0f + rintf(zero)))} * 0x00010001u;
}

/// The bits of a number's term 0, 1 or 2: what bfloat16 leaves of it, of the rest, of that rest.
__device__ inline std::uint16_t term_of(float number, int term) {
  __nv_bfloat16 part = __float2bfloat16_rn(number);
  for (int i = 0; i < term; ++i) {
    number -= __bfloat162float(part);
    // Infinity less infinity: the first term says it all.
    part = __float2bfloat16_rn(isnan(number) ? 0.0f : number);
  }
  return __bfloat16_as_ushort(part);
}

/// An activation as a precision has its operands.
__device__ inline float rounded_operand(Precision precision, float x) {
  if (precision == Precision::Bf16) return seen<Precision::Bf16>(x);
  return precision == Precision::Tf32 ? seen<Precision::Tf32>(x) : x;
}

/// A bias likewise; TF32 is of products alone.
__device__ inline float rounded_bias(Precision precision, float x) {
  return precision == Precision::Bf16 ? seen<Precision::Bf16>(x) : x;
}

/// What becomes of a sum. A function of its own: the maps would be compiled into every kernel.
static __device__ __noinline__ void finish_output(const PackedLinearArgs& args, std::int64_t row,
                                                  std::int64_t output, float sum, bool is_real) {
  const std::int64_t at = row * args.n + output;
  if (!is_real) {
    args.y[at] = 0;
    return;
  }
  if (args.bias != nullptr) sum += rounded_bias(args.precision, args.bias[output]);
  if (args.precision == Precision::Bf16) sum = __bfloat162float(__float2bfloat16_rn(sum));
  sum = apply(args.map, sum, 0);
  args.y[at] = args.residual == nullptr ? sum : sum + args.residual[at];
}

/// Shared memory that a block has at most.
inline constexpr std::size_t kMostShared = std::size_t{160} << 10;

}  // namespace lathe::engine::cuda
