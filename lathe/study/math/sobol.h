#pragma once

#include <cstdint>

namespace lathe::study {

/// How many dimensions the table of direction numbers covers.
inline constexpr int kSobolDimensions = 64;

/// Coordinate `dimension` of point `index` of Sobol's sequence, with 32 bits after the point: each
/// power of two of consecutive points is spread evenly.
std::uint32_t sobol(std::uint32_t index, int dimension);

/// The same in [0, 1), scrambled as Owen does: at each level of the binary tree the halves are
/// swapped or not by a coin that `seed` throws. Stays as even, and no point sits on a corner.
double scrambled_sobol(std::uint32_t index, int dimension, std::uint64_t seed);

}  // namespace lathe::study
