#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lathe/compress/quantizers.h"

namespace lathe::experiment {

/// Where a quantizer rounds values to, for pictures of them.
struct RoundingLevels {
  std::vector<double> levels = {};  ///< sorted, of all rows; none where blocks make their own
  std::int64_t count = 0;           ///< of one row or block
  /// Beyond these values are clipped; nothing where rows have bounds of their own.
  std::optional<double> low = {}, high = {};
  double clipped = 0;  ///< share of the values more than half a step beyond the bounds of their row
};

/// The levels of a quantizer whose scales are known, and what of `values` it clips (of a parameter
/// its own values instead). Nothing for formats that make a scale for each block, and for those
/// with too many levels to be seen.
std::optional<RoundingLevels> levels_of(const compress::Quantizer& quantizer, const Graph& graph,
                                        const State& state, std::span<const double> values);

}  // namespace lathe::experiment
