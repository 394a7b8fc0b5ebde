#pragma once

#include <cstdint>
#include <vector>

#include "lathe/core/tensor.h"

namespace lathe::ops {

/// The last position that each row of mask[B,L] marks; the first where it marks none.
std::vector<std::int64_t> last_positions(const Tensor& mask);

}  // namespace lathe::ops
