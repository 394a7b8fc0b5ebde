#pragma once

#include <vector>

#include "lathe/core/number_format.h"

namespace lathe::numerics {

/// Every finite number that a format can round to at scale 1 (1, 1/2, 1/4, ... where an element has
/// several), in ascending order, each once. Empty for formats of more than 16 bits.
std::vector<double> representable_numbers(const NumberFormat& format);

}  // namespace lathe::numerics
