#pragma once

// For the tests of the kernels: a suite that runs once on each instruction set of this machine, and
// matrices that notice a write outside their elements.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "lathe/engine/cpu/kernels.h"

namespace lathe::engine {

/// The rounding error of one float operation, relative to its result.
inline constexpr double kUnit = 0x1p-24;

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& table() const { return kernels(GetParam()); }
};

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512})
    if (is_supported(isa)) isas.push_back(isa);
  return isas;
}

inline std::string isa_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(name(info.param));
}

/// Rows of floats `stride` apart, with guard values before, between and after them.
class Matrix {
 public:
  static constexpr float kGuard = -12345.5f;

  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap = 0)
      : rows_(rows),
        columns_(columns),
        stride_(columns + gap),
        floats_(static_cast<std::size_t>(rows * stride_ + 2 * kMargin), kGuard) {
    fill(0.0f);
  }
  /// Normal random numbers that depend on the shape and the seed alone.
  static Matrix random(std::int64_t rows, std::int64_t columns, std::int64_t gap = 0,
                       unsigned seed = 1) {
    Matrix matrix(rows, columns, gap);
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) matrix(r, c) = normal(generator);
    return matrix;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t stride() const { return stride_; }
  float* data() { return floats_.data() + kMargin; }
  const float* data() const { return floats_.data() + kMargin; }
  float* row(std::int64_t r) { return data() + r * stride_; }
  const float* row(std::int64_t r) const { return data() + r * stride_; }
  float& operator()(std::int64_t r, std::int64_t c) { return row(r)[c]; }
  float operator()(std::int64_t r, std::int64_t c) const { return row(r)[c]; }
  void fill(float value) {
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t c = 0; c < columns_; ++c) row(r)[c] = value;
  }

  bool guards_are_intact() const {
    for (std::int64_t i = -kMargin; i < rows_ * stride_ + kMargin; ++i) {
      const bool inside = i >= 0 && i < rows_ * stride_ && i % stride_ < columns_;
      if (!inside && data()[i] != kGuard) return false;
    }
    return true;
  }
  /// Whether every element has the same bits, NaN included.
  bool has_same_bits(const Matrix& other) const {
    for (std::int64_t r = 0; r < rows_; ++r)
      if (std::memcmp(row(r), other.row(r), static_cast<std::size_t>(columns_) * sizeof(float)) !=
          0)
        return false;
    return true;
  }

 private:
  static constexpr std::int64_t kMargin = 32;
  std::int64_t rows_, columns_, stride_;
  std::vector<float> floats_;
};

}  // namespace lathe::engine
