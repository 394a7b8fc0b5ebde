#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lathe/core/number_format.h"
#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

/// Values for a test, row after row.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values = {};
};

/// Whether two values are the same bits, any NaN counting as any other.
inline bool is_same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || bits_of(a) == bits_of(b);
}

inline bool are_same(const float* a, const float* b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!is_same(a[i], b[i])) return false;
  return true;
}

/// Scales and zero points for a format that is given them, different for every block.
struct Given {
  std::vector<float> scales, zeros;
};
inline Given given_scales(const NumberFormat& format, std::int64_t rows, std::int64_t columns) {
  Given given;
  const std::int64_t count = format.num_given_scales(rows, columns);
  for (std::int64_t i = 0; i < count; ++i) {
    given.scales.push_back(0.011f * static_cast<float>(1 + i % 7));
    given.zeros.push_back(static_cast<float>(i % 4));
  }
  return given;
}

inline QuantizeArgs arguments(const Matrix& matrix, const Given& given, float* y, Isa isa) {
  return {.rows = matrix.rows,
          .columns = matrix.columns,
          .x = matrix.values.data(),
          .y = y,
          .scales = given.scales.empty() ? nullptr : given.scales.data(),
          .zeros = given.zeros.empty() ? nullptr : given.zeros.data(),
          .isa = isa};
}

/// `quantize` of a format on one path, with the scales of `given_scales`.
inline std::vector<float> quantized(const NumberFormat& format, const Matrix& matrix, Isa isa,
                                    Rounding rounding = Rounding::NearestEven) {
  const Given given = given_scales(format, matrix.rows, matrix.columns);
  std::vector<float> y(matrix.values.size());
  QuantizeArgs args = arguments(matrix, given, y.data(), isa);
  args.rounding = rounding;
  format.quantize(args);
  return y;
}

/// decode(encode(x)): what a format is.
inline std::vector<float> recoded(const NumberFormat& format, const Matrix& matrix,
                                  Rounding rounding = Rounding::NearestEven) {
  const Given given = given_scales(format, matrix.rows, matrix.columns);
  QuantizeArgs args = arguments(matrix, given, nullptr, Isa::Plain);
  args.rounding = rounding;
  std::vector<float> y(matrix.values.size());
  format.decode(format.encode(args), args.scales, args.zeros, y.data());
  return y;
}

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512})
    if (is_supported(isa)) isas.push_back(isa);
  return isas;
}

/// Normally distributed values whose rows have sizes from 2^-20 to 2^20.
inline Matrix random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Matrix matrix{rows, columns};
  for (std::int64_t r = 0; r < rows; ++r) {
    const float size = std::ldexp(1.0f, static_cast<int>(r * 7 % 41) - 20);
    for (std::int64_t c = 0; c < columns; ++c) matrix.values.push_back(size * normal(random));
  }
  return matrix;
}

/// Bit patterns of every kind: all exponents, subnormals, infinities and, if asked, NaN.
inline Matrix wild_matrix(std::int64_t rows, std::int64_t columns, bool has_specials,
                          unsigned seed) {
  std::mt19937 random(seed);
  Matrix matrix{rows, columns};
  while (std::ssize(matrix.values) < rows * columns) {
    const float value = float_of(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value) || has_specials) matrix.values.push_back(value);
    if (random() % 8 == 0 && std::ssize(matrix.values) < rows * columns)
      matrix.values.push_back(random() % 2 == 0 ? 0.0f : -0.0f);
    if (has_specials && random() % 40 == 0 && std::ssize(matrix.values) < rows * columns) {
      const float infinity = std::numeric_limits<float>::infinity();
      matrix.values.push_back(random() % 2 == 0 ? infinity : -infinity);
    }
  }
  return matrix;
}

/// Short binary fractions of one size, which fall on and between the numbers of a format often.
inline Matrix tied_matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  Matrix matrix{rows, columns};
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto steps = static_cast<float>(static_cast<int>(random() % 2048) - 1024);
      matrix.values.push_back(std::ldexp(steps, -static_cast<int>(r % 12)));
    }
  return matrix;
}

}  // namespace lathe::numerics
