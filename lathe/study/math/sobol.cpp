#include "lathe/study/math/sobol.h"

#include <array>
#include <bit>

#include "lathe/core/error.h"
#include "lathe/core/philox.h"

namespace lathe::study {

namespace {

// Joe and Kuo's choice (2008) for dimensions 2 and up: a primitive polynomial over the field of two
// elements, highest power first in the bits, and as many odd numbers as its degree.
struct Direction {
  std::uint32_t polynomial;
  std::array<std::uint16_t, 9> initial;
};
constexpr std::array<Direction, kSobolDimensions - 1> kDirections = {{
    {3, {1}},
    {7, {1, 3}},
    {11, {1, 3, 1}},
    {13, {1, 1, 1}},
    {19, {1, 1, 3, 3}},
    {25, {1, 3, 5, 13}},
    {37, {1, 1, 5, 5, 17}},
    {41, {1, 1, 5, 5, 5}},
    {47, {1, 1, 7, 11, 19}},
    {55, {1, 1, 5, 1, 1}},
    {59, {1, 1, 1, 3, 11}},
    {61, {1, 3, 5, 5, 31}},
    {67, {1, 3, 3, 9, 7, 49}},
    {91, {1, 1, 1, 15, 21, 21}},
    {97, {1, 3, 1, 13, 27, 49}},
    {103, {1, 1, 1, 15, 7, 5}},
    {109, {1, 3, 1, 15, 13, 25}},
    {115, {1, 1, 5, 5, 19, 61}},
    {131, {1, 3, 7, 11, 23, 15, 103}},
    {137, {1, 3, 7, 13, 13, 15, 69}},
    {143, {1, 1, 3, 13, 7, 35, 63}},
    {145, {1, 3, 5, 9, 1, 25, 53}},
    {157, {1, 3, 1, 13, 9, 35, 107}},
    {167, {1, 3, 1, 5, 27, 61, 31}},
    {171, {1, 1, 5, 11, 19, 41, 61}},
    {185, {1, 3, 5, 3, 3, 13, 69}},
    {191, {1, 1, 7, 13, 1, 19, 1}},
    {193, {1, 3, 7, 5, 13, 19, 59}},
    {203, {1, 1, 3, 9, 25, 29, 41}},
    {211, {1, 3, 5, 13, 23, 1, 55}},
    {213, {1, 3, 7, 3, 13, 59, 17}},
    {229, {1, 3, 1, 3, 5, 53, 69}},
    {239, {1, 1, 5, 5, 23, 33, 13}},
    {241, {1, 1, 7, 7, 1, 61, 123}},
    {247, {1, 1, 7, 9, 13, 61, 49}},
    {253, {1, 3, 3, 5, 3, 55, 33}},
    {285, {1, 3, 1, 15, 31, 13, 49, 245}},
    {299, {1, 3, 5, 15, 31, 59, 63, 97}},
    {301, {1, 3, 1, 11, 11, 11, 77, 249}},
    {333, {1, 3, 1, 11, 27, 43, 71, 9}},
    {351, {1, 1, 7, 15, 21, 11, 81, 45}},
    {355, {1, 3, 7, 3, 25, 31, 65, 79}},
    {357, {1, 3, 1, 1, 19, 11, 3, 205}},
    {361, {1, 1, 5, 9, 19, 21, 29, 157}},
    {369, {1, 3, 7, 11, 1, 33, 89, 185}},
    {391, {1, 3, 3, 3, 15, 9, 79, 71}},
    {397, {1, 3, 7, 11, 15, 39, 119, 27}},
    {425, {1, 1, 3, 1, 11, 31, 97, 225}},
    {451, {1, 1, 1, 3, 23, 43, 57, 177}},
    {463, {1, 3, 7, 7, 17, 17, 37, 71}},
    {487, {1, 3, 1, 5, 27, 63, 123, 213}},
    {501, {1, 1, 3, 5, 11, 43, 53, 133}},
    {529, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
    {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
    {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
    {557, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
    {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
    {601, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
    {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
    {617, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
    {623, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
    {631, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
    {637, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
}};

// Column k of the generator matrix of each dimension: what bit k of the index contributes.
using Columns = std::array<std::uint32_t, 32>;

constexpr std::array<Columns, kSobolDimensions> make_columns() {
  std::array<Columns, kSobolDimensions> result{};
  for (int k = 0; k < 32; ++k) result[0][k] = 1u << (31 - k);
  for (int dimension = 1; dimension < kSobolDimensions; ++dimension) {
    const Direction& direction = kDirections[dimension - 1];
    const int degree = static_cast<int>(std::bit_width(direction.polynomial)) - 1;
    Columns& columns = result[dimension];
    for (int k = 0; k < 32; ++k) {
      if (k < degree) {
        columns[k] = static_cast<std::uint32_t>(direction.initial[k]) << (31 - k);
        continue;
      }
      // The recurrence of the polynomial; the term of the highest power comes shifted.
      columns[k] = columns[k - degree] ^ (columns[k - degree] >> degree);
      for (int term = 1; term < degree; ++term)
        if (direction.polynomial >> (degree - term) & 1) columns[k] ^= columns[k - term];
    }
  }
  return result;
}
constexpr std::array<Columns, kSobolDimensions> kColumns = make_columns();

}  // namespace

std::uint32_t sobol(std::uint32_t index, int dimension) {
  check(dimension >= 0 && dimension < kSobolDimensions, "a dimension that the table covers");
  std::uint32_t value = 0;
  for (int k = 0; index != 0; ++k, index >>= 1)
    if (index & 1) value ^= kColumns[dimension][k];
  return value;
}

double scrambled_sobol(std::uint32_t index, int dimension, std::uint64_t seed) {
  const std::uint32_t value = sobol(index, dimension);
  std::uint32_t scrambled = 0;
  for (int level = 0; level < 32; ++level) {
    // The coin belongs to the node of the tree that the higher bits lead to.
    const std::uint32_t path = level == 0 ? 0 : value >> (32 - level);
    const PhiloxCounter coins = philox(
        {path, static_cast<std::uint32_t>(level), static_cast<std::uint32_t>(dimension), 0}, seed);
    scrambled |= ((value >> (31 - level) & 1) ^ (coins[0] & 1)) << (31 - level);
  }
  return scrambled / 4294967296.0;
}

}  // namespace lathe::study
