#pragma once

#include "lathe/engine/cuda/arguments/operand.h"

// Norms of channels and what they remember.
namespace lathe::engine::cuda {

/// x is [outer, channels, inner].
struct ChannelSizes {
  std::int64_t outer = 0, channels = 0, inner = 0;
  constexpr std::int64_t count() const { return outer * inner; }  ///< of a channel's numbers
};
/// Blocks of threads that share the sums of a channel; never fewer for more numbers.
inline constexpr std::int64_t norm_parts(const ChannelSizes& sizes) {
  const std::int64_t blocks = sizes.inner == 1 ? (sizes.channels + 31) / 32 : sizes.channels;
  const std::int64_t most = 1 + 528 / (blocks < 1 ? 1 : blocks), wanted = 1 + sizes.count() / 2048;
  return wanted < most ? wanted : most;
}
/// Doubles of `sums`, and floats of `coefficients`.
inline constexpr std::int64_t norm_sums(const ChannelSizes& sizes) {
  return norm_parts(sizes) * sizes.channels * 2;
}
inline constexpr std::int64_t norm_coefficients(const ChannelSizes& sizes) {
  return sizes.channels * 4;
}

enum class ChannelNorm : std::int32_t {
  Given,          ///< by given statistics
  GivenGradient,  ///< results: dweight, dbias, dmean, dvariance
  /// By those of x; results: mean, variance and, where it is asked for, what distances from the
  /// mean are multiplied by.
  Own,
  /// Results: dweight, dbias and, where they are asked for, the factor, shift and slope of
  /// dx = factor (dy - shift - (x - mean) slope).
  OwnGradient,
};
struct BatchNormArgs {
  ChannelNorm kind = ChannelNorm::Given;
  ChannelSizes sizes;
  const void* x = nullptr;
  const void* dy = nullptr;
  Number x_as = Number::F32, dy_as = Number::F32;  ///< or BF16
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  const float* dmean = nullptr;      ///< of OwnGradient; may be null
  const float* dvariance = nullptr;  ///< likewise
  double eps = 0;
  /// Or dx; null: nobody asks. Without both, the results alone are computed.
  float* y = nullptr;
  std::uint16_t* y_half = nullptr;  ///< the same as bfloat16; null: nobody asks
  float* results[5] = {};
  double* sums = nullptr;
  float* coefficients = nullptr;
};

/// y = (x - mean) slope + shift, a number of each for a channel, which lie last; with dy,
/// factor (dy - shift - (x - mean) slope).
struct ScaleChannelsArgs {
  const void* x = nullptr;
  const void* dy = nullptr;
  Number x_as = Number::F32, dy_as = Number::F32;  ///< or BF16
  const float* mean = nullptr;
  const float* slope = nullptr;
  const float* shift = nullptr;
  const float* factor = nullptr;
  float* y = nullptr;  ///< null: nobody asks
  std::uint16_t* y_half = nullptr;
  std::int64_t rows = 0, channels = 0;
};

/// y = kept + momentum * (seen - kept), or kept where the scale is NaN.
struct RunningAverageArgs {
  const float* kept = nullptr;
  const float* seen = nullptr;
  const float* scale = nullptr;
  float* y = nullptr;
  float momentum = 0;
  std::int64_t count = 0;
};

}  // namespace lathe::engine::cuda
