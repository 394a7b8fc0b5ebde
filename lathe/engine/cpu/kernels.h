#pragma once

#include <optional>
#include <string_view>

#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {

/// The instruction sets the float32 kernels exist for, from the least to the most able.
///
/// A result has the same bits for any thread count on one path; between paths it may differ in the
/// last bits, because sums are split over other numbers of lanes and Plain has no fused
/// multiply-add.
enum class Isa { Plain, Avx2, Avx512 };

/// "plain", "avx2" or "avx512".
std::string_view name(Isa isa);
std::optional<Isa> parse_isa(std::string_view text);
/// Whether this processor and its operating system can run the path.
bool is_supported(Isa isa);
/// The most able path that is supported here.
Isa best_isa();
/// The kernels of a path; `isa` must be supported here.
const Kernels& kernels(Isa isa);

/// Measures what one core does in register-only multiply-adds, in GFLOP/s: the best of short
/// windows that together take about `seconds`.
double fma_peak(Isa isa, double seconds);

}  // namespace lathe::engine
