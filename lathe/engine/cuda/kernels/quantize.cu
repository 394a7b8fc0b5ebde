// Number formats, bit for bit as their codecs define them: the headers are those of the CPU, and
// what a scale is made of (a largest magnitude, a range) does not depend on the order it is read
// in.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/numerics/codecs/level_codec.h"
#include "lathe/numerics/codecs/minifloat_codec.h"
#include "lathe/numerics/codecs/shared_exponent.h"

namespace lathe::engine::cuda {
namespace {

using numerics::bits_of;
using numerics::float_of;

constexpr int kBlocksOfGroup = kThreads / kWarp;
constexpr float kSmallestScale = 0x1p-126f;

struct BlockScale {
  float scale = 1;
  float inverse = 1;  // 0: values are divided by the scale
  std::int64_t zero = 0;
};

__device__ float nearest_power_of_two(float scale) {
  constexpr std::uint32_t kSquareRootOfTwo = 0x3504f3;  // the mantissa's bits
  const std::uint32_t bits = bits_of(scale) & ~numerics::kSignBit;
  std::uint32_t exponent = bits >> 23;
  if (exponent == 0 || bits > numerics::kInfinityBits) return kSmallestScale;
  if ((bits & 0x7fffff) > kSquareRootOfTwo) ++exponent;
  return float_of((exponent < 254 ? exponent : 254) << 23);
}

struct Largest {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return a > b ? a : b;
  }
};
struct Most {
  __device__ float operator()(float a, float b) const { return a < b ? b : a; }
};
struct Least {
  __device__ float operator()(float a, float b) const { return b < a ? b : a; }
};

// The scale of `width` values, found by a warp.
__device__ BlockScale scale_of(const QuantizeArgs& args, const float* x, std::int64_t width,
                               std::int64_t index) {
  const int lane = threadIdx.x % kWarp;
  switch (args.rule) {
    case ScaleBy::Constant:
      return {};
    case ScaleBy::Given:
      return {args.scales[index], 0, args.zeros == nullptr ? 0 : llrintf(args.zeros[index])};
    case ScaleBy::GivenPowerOfTwo: {
      const float scale = nearest_power_of_two(args.scales[index]);
      return {scale, 1 / scale, 0};
    }
    case ScaleBy::SharedExponent: {
      std::uint32_t largest = 0;
      for (std::int64_t i = lane; i < width; i += kWarp)
        largest = Largest()(largest, bits_of(x[i]) & ~numerics::kSignBit);
      const numerics::SharedExponent exponent{args.highest_exponent, args.round_up,
                                              args.lowest_code};
      const int code = exponent.code(join_warp(largest, Largest()));
      return {numerics::SharedExponent::scale(code), numerics::SharedExponent::inverse(code), 0};
    }
    case ScaleBy::LargestMagnitude: {
      float largest = 0;
      for (std::int64_t i = lane; i < width; i += kWarp)
        if (isfinite(x[i])) largest = Most()(largest, fabsf(x[i]));
      const float scale = Most()(join_warp(largest, Most()) / args.divisor, kSmallestScale);
      return {scale, args.by_reciprocal ? 1 / scale : 0, 0};
    }
    case ScaleBy::Range: {
      float low = 0, high = 0;
      for (std::int64_t i = lane; i < width; i += kWarp) {
        if (!isfinite(x[i])) continue;
        low = Least()(low, x[i]);
        high = Most()(high, x[i]);
      }
      low = join_warp(low, Least());
      high = join_warp(high, Most());
      const float codes = static_cast<float>(args.high);
      const float scale = Most()(high / codes - low / codes, kSmallestScale);
      const float zero = Least()(Most()(rintf(-low / scale), 0.0f), codes);
      return {scale, 0, static_cast<std::int64_t>(zero)};
    }
  }
  return {};
}

template <typename Codec>
__device__ void round_block(const Codec& codec, const QuantizeArgs& args, const BlockScale& scale,
                            const float* x, float* y, std::int64_t width) {
  for (std::int64_t i = threadIdx.x % kWarp; i < width; i += kWarp) {
    const float value = x[i];
    const float scaled = scale.inverse == 0 ? value / scale.scale : value * scale.inverse;
    const float units = scaled * (1 / args.element_step);
    const std::uint32_t code = codec.encode(units, Rounding::NearestEven, 0);
    y[i] = value == value ? (codec.decode(code) * args.element_step) * scale.scale : value;
  }
}

// A warp for each block of values.
__global__ void quantize_kernel(const __grid_constant__ QuantizeArgs args) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t blocks = (args.columns + args.block - 1) / args.block;
  const std::int64_t all = args.rows.capacity * blocks;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlocksOfGroup;
  for (std::int64_t index =
           static_cast<std::int64_t>(blockIdx.x) * kBlocksOfGroup + threadIdx.x / kWarp;
       index < all; index += stride) {
    const std::int64_t row = index / blocks, first = (index - row * blocks) * args.block;
    const std::int64_t width =
        args.columns - first < args.block ? args.columns - first : args.block;
    const float* const x = args.x + row * args.columns + first;
    float* const y = args.y + row * args.columns + first;
    if (row >= real) {
      for (std::int64_t i = threadIdx.x % kWarp; i < width; i += kWarp) y[i] = 0;
      continue;
    }
    const BlockScale scale = scale_of(args, x, width, args.has_one_scale ? 0 : index);
    switch (args.codec) {
      case Codec::Integer:
        round_block(numerics::IntegerCodec{args.bits, args.low - scale.zero, args.high - scale.zero,
                                           args.zero + scale.zero},
                    args, scale, x, y, width);
        break;
      case Codec::Minifloat:
        round_block(numerics::MinifloatCodec{args.exponent_bits, args.mantissa_bits, args.bias,
                                             static_cast<numerics::Specials>(args.specials),
                                             args.overflows},
                    args, scale, x, y, width);
        break;
      case Codec::Levels:
        round_block(numerics::LevelCodec{args.levels, args.thresholds}, args, scale, x, y, width);
        break;
    }
  }
}

// A warp for each block: dx, and the sum that the block adds to the gradient of its scale.
__global__ void learned_step_kernel(LearnedStepArgs args) {
  const std::int64_t real = real_size(args.rows);
  const std::int64_t blocks = (args.columns + args.block - 1) / args.block;
  const std::int64_t all = args.rows.capacity * blocks;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlocksOfGroup;
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t index =
           static_cast<std::int64_t>(blockIdx.x) * kBlocksOfGroup + threadIdx.x / kWarp;
       index < all; index += stride) {
    const std::int64_t row = index / blocks, first = (index - row * blocks) * args.block;
    const std::int64_t width =
        args.columns - first < args.block ? args.columns - first : args.block;
    const std::int64_t at = row * args.columns + first;
    if (row >= real) {
      for (std::int64_t i = lane; i < width; i += kWarp) args.dx[at + i] = 0;
      if (lane == 0) args.parts[index] = 0;
      continue;
    }
    const std::int64_t s = args.has_one_scale ? 0 : index;
    const double scale =
        args.is_power_of_two ? nearest_power_of_two(args.scales[s]) : args.scales[s];
    const double zero = args.zeros == nullptr ? 0 : args.zeros[s];
    double sum = 0;
    for (std::int64_t i = lane; i < width; i += kWarp) {
      const double x = args.x[at + i], y = args.y[at + i], dy = args.dy[at + i];
      const double place = x / scale + zero;
      // A NaN counts as inside: it has to show.
      const bool is_inside = !(place < args.minimum || place > args.maximum);
      args.dx[at + i] = is_inside ? args.dy[at + i] : 0.0f;
      sum += dy * (is_inside ? y - x : y) / scale;
    }
    sum = join_warp(sum, Add());
    if (lane == 0) args.parts[index] = sum;
  }
}

__global__ void scale_gradient_kernel(LearnedStepArgs args, std::int64_t count) {
  for (std::int64_t i = global_thread(); i < count; i += grid_stride())
    args.dscale[i] = static_cast<float>(args.parts[i] * args.factor);
}

__global__ void one_scale_gradient_kernel(LearnedStepArgs args, std::int64_t count) {
  __shared__ double room[kWarp];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += args.parts[i];
  sum = join_block(sum, 0.0, room, Add());
  if (threadIdx.x == 0) *args.dscale = static_cast<float>(sum * args.factor);
}

}  // namespace

void quantize(const QuantizeArgs& args, Stream* stream) {
  if (args.rows.capacity == 0 || args.columns == 0) return;
  const std::int64_t blocks = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
  quantize_kernel<<<blocks_for(blocks, kBlocksOfGroup), kThreads, 0, stream_of(stream)>>>(args);
}

void learned_step(const LearnedStepArgs& args, Stream* stream) {
  if (args.columns == 0) return;
  const std::int64_t blocks = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
  const cudaStream_t on = stream_of(stream);
  if (blocks != 0)
    learned_step_kernel<<<blocks_for(blocks, kBlocksOfGroup), kThreads, 0, on>>>(args);
  if (args.has_one_scale)
    one_scale_gradient_kernel<<<1, kThreads, 0, on>>>(args, blocks);
  else if (blocks != 0)
    scale_gradient_kernel<<<blocks_for(blocks, kThreads), kThreads, 0, on>>>(args, blocks);
}

}  // namespace lathe::engine::cuda
