#pragma once

#include <cstdint>
#include <vector>

#include "lathe/core/number_format.h"

namespace lathe::numerics {

/// A matrix as whole numbers of 8 bits and what they are worth: element = (number - zero) * scale.
///
/// Numbers that are not negative as stored (those with a zero point) are 128 less here, and so are
/// their zeros, so that all fit a signed byte.
struct RowCodes {
  std::int64_t rows = 0, columns = 0;
  std::int64_t blocks = 1;  ///< of a row, each with its scale
  std::int64_t width = 0;   ///< columns of a block; the last may have fewer
  std::vector<std::int8_t> numbers;
  std::vector<float> scales;        ///< the blocks of each row in turn
  std::vector<std::int32_t> zeros;  ///< laid out like scales
};

/// Whether a format's numbers are whole numbers of at most 8 bits times a scale that a tensor, a
/// row or a run of a row's columns shares.
bool has_row_codes(const NumberFormat& format);

/// The scales that a row of so many columns has in a format with row codes.
std::int64_t blocks_of_row(const FormatFacts& facts, std::int64_t columns);

/// Reads codes of a format that has row codes; scales and zeros as for its `decode`.
RowCodes read_codes(const NumberFormat& format, const EncodedMatrix& encoded, const float* scales,
                    const float* zeros);

}  // namespace lathe::numerics
