#pragma once

#include <cstdint>
#include <span>

namespace lathe::numerics {

/// How far quantized values are from what they stand for. Pairs with a NaN or an infinity on either
/// side are counted and left out.
struct ErrorMeasures {
  std::int64_t count = 0;
  std::int64_t num_non_finite = 0;
  double signal_power = 0;  ///< the mean square of the values
  double mean_squared_error = 0;
  double largest_error = 0;  ///< magnitude
  double mean_error = 0;     ///< signed: what rounding adds on average

  /// Signal to quantization noise in decibels; infinite without error.
  double sqnr() const;
};

ErrorMeasures measure_error(std::span<const float> values, std::span<const float> quantized);

}  // namespace lathe::numerics
