#pragma once

#include <span>
#include <vector>

#include "lathe/core/isa.h"
#include "lathe/engine/cpu/split_table.h"

namespace lathe::engine {

/// The way to multiply floats in parts that is faster than multiplying them whole on this processor
/// and with `isa`, or null where none is: AMX counts as AVX-512.
const SplitKernels* split_kernels(Isa isa);

/// Every way that this processor has, and AMX's code without its instructions.
std::vector<const SplitKernels*> every_split_kernels();

/// Whether a weight [n, k] is worth and fit to be multiplied in parts: large enough to pay for
/// splitting x, a depth of whole steps, and no number that is too large.
bool suits_split(std::span<const float> weight, std::int64_t n, std::int64_t k);

}  // namespace lathe::engine
