#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lathe/core/number_format.h"
#include "lathe/numerics/calibration_range.h"

namespace lathe::numerics {

/// How a matrix is rounded, to be looked at.
struct RoundMatrixOptions {
  std::optional<ScaleAndZero> scale = {};  ///< of a format that is given one; none: from the range
  Rounding rounding = Rounding::NearestEven;
  std::uint64_t seed = 0;  ///< of stochastic rounding
  Isa isa = best_isa();
};

/// What a format made of a matrix: values, and the bits and scales that they stand for.
struct RoundedMatrix {
  std::vector<float> values = {};
  std::vector<std::uint32_t> patterns = {};  ///< none where the format has no codes
  std::vector<std::uint8_t> scale_codes = {};
  std::vector<float> scales = {}, zeros = {};
};

RoundedMatrix round_matrix(const NumberFormat& format, const CalibrationValues& matrix,
                           const RoundMatrixOptions& options = {});

}  // namespace lathe::numerics
