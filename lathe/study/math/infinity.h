#pragma once

#include <limits>

namespace lathe::study {

/// The loss of what has none, and the bound of what has no bound.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace lathe::study
