#pragma once

#include "lathe/core/isa.h"
#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {

/// A result of the float32 kernels has the same bits for any thread count on one path; between
/// paths it may differ in the last bits, because sums are split over other numbers of lanes and
/// Plain has no fused multiply-add.
using lathe::best_isa;
using lathe::is_supported;
using lathe::Isa;
using lathe::name;
using lathe::parse_isa;

/// The kernels of a path; `isa` must be supported here.
const Kernels& kernels(Isa isa);

/// Measures what one core does in register-only multiply-adds, in GFLOP/s: the best of short
/// windows that together take about `seconds`.
double fma_peak(Isa isa, double seconds);

}  // namespace lathe::engine
