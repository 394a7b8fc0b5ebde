#pragma once

#include "lathe/core/isa.h"
#include "lathe/numerics/kernels/kernel_table.h"

namespace lathe::numerics {

/// The kernels of a path; `isa` must be supported here.
const Kernels& kernels(Isa isa);

/// Whether an output of that many bytes is better written past the caches: it would not stay in
/// them, and an ordinary store first reads what it overwrites.
bool should_stream(std::int64_t bytes);

}  // namespace lathe::numerics
