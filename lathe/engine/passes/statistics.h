#pragma once

#include <cstdint>
#include <string>

namespace lathe::engine {

/// What the values of a node's first result were, over all batches it was measured on.
struct Statistics {
  static constexpr const char* kAnnotation = "statistics";
  std::int64_t count = 0;
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double mean_absolute = 0;
  double deviation = 0;  ///< population standard deviation
  double quantile = 0;   ///< of the absolute value, at the level asked for
  double level = 0;
  double sparsity = 0;  ///< share of exact zeros
};
std::string to_text(const Statistics& statistics);

}  // namespace lathe::engine
