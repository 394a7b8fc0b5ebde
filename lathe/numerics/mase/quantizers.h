#pragma once

#include <cmath>
#include <cstdint>

#include "lathe/numerics/codecs/float_bits.h"
#include "lathe/numerics/mase/rounded_log2.h"

namespace lathe::numerics {

// MASE's quantizers for one value, step by step in float32 as PyTorch computes them: RNE, constants
// added against logarithms of 0, magnitudes up to 1e-8 passed through. NaN stays NaN.

inline float clamp_float(float value, float low, float high) {
  return value < low ? low : value > high ? high : value;  // NaN passes
}
inline float sign_of(float value) {
  return value > 0 ? 1.0f : value < 0 ? -1.0f : value;
}

struct MaseInteger {
  float steps_per_one = 1, low = 0, high = 0;
  bool is_floor = false;
  float operator()(float x) const {
    const float scaled = x * steps_per_one;
    const float whole = is_floor ? std::floor(scaled) : std::nearbyint(scaled);
    return clamp_float(whole, low, high) / steps_per_one;
  }
};

/// What isclose(|x|, 0) lets through.
inline bool passes_through(float x) {
  return std::fabs(x) <= 1e-8f;
}

struct MaseMinifloatDenorm {
  int mantissa_bits = 3, low = -7, high = 8;
  float operator()(float x) const {
    if (std::isnan(x)) return x;
    if (passes_through(x)) return x + 0.0f;
    const float magnitude = std::fabs(x);
    const int exponent = bound(std::isinf(x) ? high : ceil_log2(magnitude + 1e-9f));
    const float steps = power_of_two(mantissa_bits);
    const float scale = power_of_two(exponent);
    const float mantissa = clamp_float(std::nearbyint(magnitude / scale * steps), 0, steps - 1);
    return sign_of(x + 1e-9f) * scale * (mantissa / steps);
  }
  int bound(int exponent) const { return exponent < low ? low : exponent > high ? high : exponent; }
};

struct MaseMinifloatIeee {
  int mantissa_bits = 3, low = -7, high = 8;
  float operator()(float x) const {
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
  int bound(int exponent) const { return exponent < low ? low : exponent > high ? high : exponent; }
};

struct MaseLog {
  int low = -63, high = 64;
  float offset() const { return 0.1f * power_of_two(low); }
  float operator()(float x) const {
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
  float operator()(float x) const {
    if (std::isnan(x)) return x;
    if (passes_through(x)) return x + 0.0f;
    const float scale = power_of_two(exponent);
    const float steps = power_of_two(mantissa_bits);
    const float mantissa =
        clamp_float(std::nearbyint((std::fabs(x) + 1e-9f) / scale * steps), 0, steps - 1);
    return sign_of(x + 1e-9f) * scale * (mantissa / steps);
  }
};

}  // namespace lathe::numerics
