#include "lathe/numerics/error_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/error.h"

namespace lathe::numerics {

double ErrorMeasures::sqnr() const {
  if (mean_squared_error == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal_power / mean_squared_error);
}

ErrorMeasures measure_error(std::span<const float> values, std::span<const float> quantized) {
  check(values.size() == quantized.size(), "as many quantized values as values");
  ErrorMeasures measures;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double error = quantized[i] - value;
    if (!std::isfinite(value) || !std::isfinite(error)) {
      ++measures.num_non_finite;
      continue;
    }
    ++measures.count;
    measures.signal_power += value * value;
    measures.mean_squared_error += error * error;
    measures.mean_error += error;
    measures.largest_error = std::max(measures.largest_error, std::fabs(error));
  }
  if (measures.count > 0) {
    const auto count = static_cast<double>(measures.count);
    measures.signal_power /= count;
    measures.mean_squared_error /= count;
    measures.mean_error /= count;
  }
  return measures;
}

}  // namespace lathe::numerics
