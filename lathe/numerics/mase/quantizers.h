#pragma once

#include <cmath>
#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"
#include "lathe/numerics/kernels/kernel_table.h"
#include "lathe/numerics/mase/rounded_log2.h"

namespace lathe::numerics {

// MASE's quantizers for one value, step by step in float32 as PyTorch computes them: RNE, constants
// added against logarithms of 0, magnitudes up to 1e-8 passed through. NaN stays NaN. CUDA compiles
// them too.

LATHE_HOST_DEVICE inline float clamp_float(float value, float low, float high) {
  return value < low ? low : value > high ? high : value;  // NaN passes
}
LATHE_HOST_DEVICE inline float sign_of(float value) {
  return value > 0 ? 1.0f : value < 0 ? -1.0f : value;
}

struct MaseInteger {
  float steps_per_one = 1, low = 0, high = 0;
  bool is_floor = false;
  LATHE_HOST_DEVICE float operator()(float x) const {
    const float scaled = x * steps_per_one;
    const float whole = is_floor ? std::floor(scaled) : std::nearbyint(scaled);
    return clamp_float(whole, low, high) / steps_per_one;
  }
};

/// What isclose(|x|, 0) lets through.
LATHE_HOST_DEVICE inline bool passes_through(float x) {
  return std::fabs(x) <= 1e-8f;
}

struct MaseMinifloatDenorm {
  int mantissa_bits = 3, low = -7, high = 8;
  LATHE_HOST_DEVICE float operator()(float x) const {
    if (std::isnan(x)) return x;
    if (passes_through(x)) return x + 0.0f;
    const float magnitude = std::fabs(x);
    const int exponent = bound(std::isinf(x) ? high : ceil_log2(magnitude + 1e-9f));
    const float steps = power_of_two(mantissa_bits);
    const float scale = power_of_two(exponent);
    const float mantissa = clamp_float(std::nearbyint(magnitude / scale * steps), 0, steps - 1);
    return sign_of(x + 1e-9f) * scale * (mantissa / steps);
  }
  LATHE_HOST_DEVICE int bound(int exponent) const {
    return exponent < low ? low : exponent > high ? high : exponent;
  }
};

struct MaseMinifloatIeee {
  int mantissa_bits = 3, low = -7, high = 8;
  LATHE_HOST_DEVICE float operator()(float x) const {
    if (std::isnan(x)) return x;
    if (passes_through(x)) return x + 0.0f;
    const float magnitude = std::fabs(x);
    const int exponent = bound(std::isinf(x) ? high : floor_log2(magnitude + 1e-9f));
    const float steps = power_of_two(mantissa_bits);
    const float scale = power_of_two(exponent);
    const float mantissa = magnitude / scale;
    const float sign = sign_of(x + 1e-9f);
    if (exponent == low) {
      const float k = clamp_float(std::nearbyint(mantissa * steps / 2), 0, steps - 1);
      return sign * (scale * 2) * (k / steps);
    }
    const float k = clamp_float(std::nearbyint(mantissa * steps - steps), 0, steps - 1);
    return sign * scale * (1 + k / steps);
  }
  LATHE_HOST_DEVICE int bound(int exponent) const {
    return exponent < low ? low : exponent > high ? high : exponent;
  }
};

struct MaseLog {
  int low = -63, high = 64;
  LATHE_HOST_DEVICE float offset() const { return 0.1f * power_of_two(low); }
  LATHE_HOST_DEVICE float operator()(float x) const {
    if (std::isnan(x)) return x;
    const float magnitude = std::fabs(x) + offset();
    int exponent = std::isinf(x) ? high : nearest_log2(magnitude);
    exponent = exponent < low ? low : exponent > high ? high : exponent;
    return sign_of(x + offset()) * power_of_two(exponent);
  }
};

struct MaseBlockFp {
  int mantissa_bits = 7;
  int exponent = 0;
  LATHE_HOST_DEVICE float operator()(float x) const {
    if (std::isnan(x)) return x;
    if (passes_through(x)) return x + 0.0f;
    const float scale = power_of_two(exponent);
    const float steps = power_of_two(mantissa_bits);
    const float mantissa =
        clamp_float(std::nearbyint((std::fabs(x) + 1e-9f) / scale * steps), 0, steps - 1);
    return sign_of(x + 1e-9f) * scale * (mantissa / steps);
  }
};

/// In double, because 2^128 is no float32; MASE's scale code 255 is a number to it.
struct MaseMxint {
  float half = 128;
  int exponent = 0;
  LATHE_HOST_DEVICE float operator()(float x) const {
    const double scale = std::ldexp(1.0, exponent < -126 ? -126 : exponent);
    const auto steps = static_cast<float>(x / scale * half);
    return static_cast<float>(clamp_float(std::nearbyint(steps), -half, half - 1) / half * scale);
  }
};

struct MaseResidual {
  const float* means = nullptr;
  int num_means = 0;
  LATHE_HOST_DEVICE float operator()(float x) const {
    float residual = x;
    float sum = 0;
    for (int i = 0; i < num_means; ++i) {
      const float term = sign_of(residual) * means[i];
      residual -= term;
      sum += term;
    }
    return sum;
  }
};

/// MASE puts tiles together by adding them to zeros, which turns -0 into 0.
template <typename Quantizer>
struct MaseTile {
  Quantizer quantizer;
  LATHE_HOST_DEVICE float operator()(float x) const { return quantizer(x) + 0.0f; }
};

/// Calls body with the quantizer of a block whose largest magnitude is given: of the kinds Block...
/// and Mxint.
template <typename Body>
LATHE_HOST_DEVICE inline void with_mase_block(const MaseTable& table, float largest,
                                              const Body& body) {
  const bool is_finite = largest < float_of(kInfinityBits);
  const auto clamp = [](int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
  };
  if (table.kind == MaseTable::Kind::BlockMinifloat) {
    const int bias = clamp(is_finite ? floor_log2(largest) : 128, 0, table.largest_bias);
    body(MaseTile<MaseMinifloatIeee>{{table.mantissa_bits, -bias, table.highest - bias}});
    return;
  }
  const int exponent = is_finite ? ceil_log2(largest) : 128;
  if (table.kind == MaseTable::Kind::BlockFp) {
    body(
        MaseTile<MaseBlockFp>{{table.mantissa_bits, clamp(exponent, table.lowest, table.highest)}});
  } else if (table.kind == MaseTable::Kind::BlockLog) {
    const int bias = clamp(table.highest - exponent, 0, table.largest_bias);
    const int high = table.highest - bias;
    body(MaseTile<MaseLog>{{-bias, high < 127 ? high : 127}});
  } else {
    body(MaseMxint{power_of_two(table.mantissa_bits), exponent});
  }
}

/// The same of the kinds that treat every value alone.
template <typename Body>
LATHE_HOST_DEVICE inline void with_mase_element(const MaseTable& table, const Body& body) {
  switch (table.kind) {
    case MaseTable::Kind::Integer:
    case MaseTable::Kind::IntegerFloor:
      return body(MaseInteger{table.steps_per_one, table.low, table.high,
                              table.kind == MaseTable::Kind::IntegerFloor});
    case MaseTable::Kind::MinifloatDenorm:
      return body(MaseMinifloatDenorm{table.mantissa_bits, table.lowest, table.highest});
    case MaseTable::Kind::MinifloatIeee:
      return body(MaseMinifloatIeee{table.mantissa_bits, table.lowest, table.highest});
    case MaseTable::Kind::Log:
      return body(MaseLog{table.lowest, table.highest});
    case MaseTable::Kind::Residual:
      return body(MaseResidual{table.means, table.num_means});
    default:
      return;  // with_mase_block, or of a row's mean
  }
}

}  // namespace lathe::numerics
