#pragma once

// Blocks of values rounded to a number format by a warp, bit for bit as the codecs define it: the
// headers are those of the CPU, and what a scale is made of (a largest magnitude, a range) does not
// depend on the order it is read in.

#include <type_traits>

#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/numerics/codecs/level_codec.h"
#include "lathe/numerics/codecs/minifloat_codec.h"
#include "lathe/numerics/codecs/shared_exponent.h"

namespace lathe::engine::cuda {

inline constexpr float kSmallestScale = 0x1p-126f;

struct BlockScale {
  float scale = 1;
  float inverse = 1;  ///< 0: values are divided by the scale
  std::int64_t zero = 0;
};

__device__ inline float nearest_power_of_two(float scale) {
  constexpr std::uint32_t kSquareRootOfTwo = 0x3504f3;  // the mantissa's bits
  const std::uint32_t bits = numerics::bits_of(scale) & ~numerics::kSignBit;
  std::uint32_t exponent = bits >> 23;
  if (exponent == 0 || bits > numerics::kInfinityBits) return kSmallestScale;
  if ((bits & 0x7fffff) > kSquareRootOfTwo) ++exponent;
  return numerics::float_of((exponent < 254 ? exponent : 254) << 23);
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

/// What at(first), at(first + stride) ... below `count` add to what a scale is made of: only what
/// its rule needs.
template <typename At>
__device__ ScalePart scale_part(const QuantizeArgs& args, const At& at, std::int64_t count,
                                std::int64_t first, std::int64_t stride) {
  ScalePart part;
  if (args.rule == ScaleBy::SharedExponent) {
    for (std::int64_t i = first; i < count; i += stride)
      part.largest = Largest()(part.largest, numerics::bits_of(at(i)) & ~numerics::kSignBit);
  } else if (args.rule == ScaleBy::LargestMagnitude) {
    for (std::int64_t i = first; i < count; i += stride)
      if (const float x = at(i); isfinite(x)) part.most = Most()(part.most, fabsf(x));
  } else if (args.rule == ScaleBy::Range) {
    for (std::int64_t i = first; i < count; i += stride) {
      const float x = at(i);
      if (!isfinite(x)) continue;
      part.low = Least()(part.low, x);
      part.high = Most()(part.high, x);
    }
  }
  return part;
}
__device__ inline ScalePart join_parts(const QuantizeArgs& args, ScalePart part) {
  if (args.rule == ScaleBy::SharedExponent) {
    part.largest = join_warp(part.largest, Largest());
  } else if (args.rule == ScaleBy::LargestMagnitude) {
    part.most = join_warp(part.most, Most());
  } else if (args.rule == ScaleBy::Range) {
    part.low = join_warp(part.low, Least());
    part.high = join_warp(part.high, Most());
  }
  return part;
}

/// The scale of a block, number `index` where scales are given, else of its values.
__device__ inline BlockScale scale_from(const QuantizeArgs& args, const ScalePart& part,
                                        std::int64_t index) {
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
      const numerics::SharedExponent exponent{args.highest_exponent, args.round_up,
                                              args.lowest_code};
      const int code = exponent.code(part.largest);
      return {numerics::SharedExponent::scale(code), numerics::SharedExponent::inverse(code), 0};
    }
    case ScaleBy::LargestMagnitude: {
      const float scale = Most()(part.most / args.divisor, kSmallestScale);
      return {scale, args.by_reciprocal ? 1 / scale : 0, 0};
    }
    case ScaleBy::Range: {
      const float codes = static_cast<float>(args.high);
      const float scale = Most()(part.high / codes - part.low / codes, kSmallestScale);
      const float zero = Least()(Most()(rintf(-part.low / scale), 0.0f), codes);
      return {scale, 0, static_cast<std::int64_t>(zero)};
    }
  }
  return {};
}

/// Rounds to whole numbers that a float holds, to the same bits as their codec.
struct WholeRounding {
  BlockScale scale;
  float element_step, least, most;
  __device__ WholeRounding(const QuantizeArgs& args, const BlockScale& of)
      : scale(of),
        element_step(args.element_step),
        least(static_cast<float>(args.low - of.zero)),
        most(static_cast<float>(args.high - of.zero)) {}
  __device__ float operator()(float value) const {
    const float scaled = scale.inverse == 0 ? value / scale.scale : value * scale.inverse;
    const float whole = rintf(scaled * (1 / element_step));
    // No code tells -0 from 0.
    const float number = fminf(fmaxf(whole, least), most) + 0.0f;
    return value == value ? (number * element_step) * scale.scale : value;
  }
};

/// Calls body(round), where round(value) is the number of the format nearest to a value.
template <typename Body>
__device__ void with_rounding(const QuantizeArgs& args, const BlockScale& scale, const Body& body) {
  const auto by = [&](const auto& codec) {
    body([&](float value) {
      const float scaled = scale.inverse == 0 ? value / scale.scale : value * scale.inverse;
      const float units = scaled * (1 / args.element_step);
      const std::uint32_t code = codec.encode(units, Rounding::NearestEven, 0);
      return value == value ? (codec.decode(code) * args.element_step) * scale.scale : value;
    });
  };
  if (args.codec == Codec::Integer && args.low >= -kMostWhole && args.high <= kMostWhole &&
      scale.zero >= -kMostWhole && scale.zero <= kMostWhole)
    return body(WholeRounding(args, scale));
  switch (args.codec) {
    case Codec::Integer:
      return by(numerics::IntegerCodec{args.bits, args.low - scale.zero, args.high - scale.zero,
                                       args.zero + scale.zero});
    case Codec::Minifloat:
      return by(numerics::MinifloatCodec{args.exponent_bits, args.mantissa_bits, args.bias,
                                         static_cast<numerics::Specials>(args.specials),
                                         args.overflows});
    case Codec::Levels:
      return by(numerics::LevelCodec{args.levels, args.thresholds});
  }
}

/// The gradient of a learned scale: what it is made of, and what one value adds to it before it is
/// divided by the scale. Products of a float and a code are exact in double, so that comparing with
/// them is comparing quotients with codes.
struct LearnedScale {
  double scale, low, high;
};
__device__ inline LearnedScale learned_scale(const LearnedStepArgs& args, std::int64_t index) {
  const double scale =
      args.is_power_of_two ? nearest_power_of_two(args.scales[index]) : args.scales[index];
  const double zero = args.zeros == nullptr ? 0.0f : args.zeros[index];
  return {scale, (args.minimum - zero) * scale, (args.maximum - zero) * scale};
}
struct LearnedGradient {
  float dx;
  double dscale;
};
__device__ inline LearnedGradient differentiate(const LearnedScale& scale, float dy, float x,
                                                float y) {
  // A NaN counts as inside: it has to show.
  const bool is_inside = !(x < scale.low || x > scale.high);
  const double change = is_inside ? static_cast<double>(y) - static_cast<double>(x) : y;
  return {is_inside ? dy : 0.0f, static_cast<double>(dy) * change};
}

/// Numbers that a lane asks for before it leaves the first of them: what it writes might be what it
/// reads next, as far as a compiler knows.
inline constexpr int kAtOnce = 4;

/// A lane of a warp goes through a line: read(i, j) keeps element i as number j, leave(i, j) takes
/// it from there.
template <typename Read, typename Leave>
__device__ void through_line(std::int64_t width, const Read& read, const Leave& leave) {
  for (std::int64_t first = threadIdx.x % kWarp; first < width; first += kAtOnce * kWarp) {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (first + j * kWarp < width) read(first + j * kWarp, j);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (first + j * kWarp < width) leave(first + j * kWarp, j);
  }
}

/// A warp rounds the block of `width` values whose scale is number `index`.
__device__ inline void quantize_block(const QuantizeArgs& args, const float* x, float* y,
                                      std::int64_t width, std::int64_t index) {
  const std::int64_t lane = threadIdx.x % kWarp;
  const auto at = [&](std::int64_t i) { return x[i]; };
  const ScalePart part = join_parts(args, scale_part(args, at, width, lane, kWarp));
  const BlockScale scale = scale_from(args, part, args.has_one_scale ? 0 : index);
  with_rounding(args, scale, [&](const auto& round) {
    if constexpr (std::is_same_v<decltype(round), const WholeRounding&>) {
      float values[kAtOnce];
      through_line(
          width, [&](std::int64_t i, int j) { values[j] = x[i]; },
          [&](std::int64_t i, int j) { y[i] = round(values[j]); });
    } else {  // more code than it is worth
      for (std::int64_t i = lane; i < width; i += kWarp) y[i] = round(x[i]);
    }
  });
}

}  // namespace lathe::engine::cuda
