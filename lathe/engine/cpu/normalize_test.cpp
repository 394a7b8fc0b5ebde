#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kWidths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 300};

class NormalizeKernel : public EveryIsa {
 protected:
  static LayerNormArgs norm(const Matrix& x, const Matrix& gamma, const Matrix& beta, Matrix& y) {
    return {.rows = x.rows(),
            .n = x.columns(),
            .x = x.data(),
            .x_stride = x.stride(),
            .residual = nullptr,
            .residual_stride = 0,
            .gamma = gamma.data(),
            .beta = beta.data(),
            .eps = 1e-5f,
            .y = y.data(),
            .y_stride = y.stride(),
            .mean = nullptr,
            .rstd = nullptr};
  }
  static RowsArgs rows(const Matrix& x, Matrix& y) {
    return {.rows = x.rows(),
            .n = x.columns(),
            .x = x.data(),
            .x_stride = x.stride(),
            .y = y.data(),
            .y_stride = y.stride()};
  }
};

// Sums of n terms by lanes take at most n/4 + 6 additions in a row, so mean and variance are within
// n/4 + 10 units of their sums of magnitudes, which for these inputs stay below 4 standard
// deviations; the rest is a handful of roundings of results below 8 in magnitude.
double norm_bound(std::int64_t n) {
  return (static_cast<double>(n) / 4 + 20) * kUnit * 8;
}

TEST_P(NormalizeKernel, LayerNormAgreesWithADoubleLoop) {
  for (const std::int64_t n : kWidths)
    for (const bool with_residual : {false, true}) {
      SCOPED_TRACE(testing::Message() << "width " << n << " residual " << with_residual);
      const Matrix x = Matrix::random(5, n, 3, 1);
      const Matrix residual = Matrix::random(5, n, 1, 2);
      const Matrix gamma = Matrix::random(1, n, 0, 3);
      const Matrix beta = Matrix::random(1, n, 0, 4);
      Matrix y(5, n, 2);
      Matrix mean(1, 5);
      Matrix rstd(1, 5);
      LayerNormArgs args = norm(x, gamma, beta, y);
      args.mean = mean.data();
      args.rstd = rstd.data();
      if (with_residual) {
        args.residual = residual.data();
        args.residual_stride = residual.stride();
      }
      table().layer_norm(args);
      for (std::int64_t r = 0; r < 5; ++r) {
        std::vector<double> z;
        for (std::int64_t c = 0; c < n; ++c)
          z.push_back(double{x(r, c)} + (with_residual ? double{residual(r, c)} : 0.0));
        double exact_mean = 0;
        for (const double a : z) exact_mean += a / static_cast<double>(n);
        double variance = 0;
        for (const double a : z)
          variance += (a - exact_mean) * (a - exact_mean) / static_cast<double>(n);
        const double exact_rstd = 1 / std::sqrt(variance + double{1e-5f});
        const double bound = norm_bound(n) * std::max(1.0, exact_rstd);
        EXPECT_NEAR(mean(0, r), exact_mean, bound);
        EXPECT_NEAR(rstd(0, r), exact_rstd, bound * std::max(1.0, exact_rstd));
        for (std::int64_t c = 0; c < n; ++c) {
          const double exact = (z[c] - exact_mean) * exact_rstd * gamma(0, c) + beta(0, c);
          ASSERT_NEAR(y(r, c), exact, bound * std::max(1.0, std::abs(double{gamma(0, c)})));
        }
      }
      EXPECT_TRUE(y.guards_are_intact());
      EXPECT_TRUE(mean.guards_are_intact());
    }
}

TEST_P(NormalizeKernel, LayerNormOfALargeOffsetLosesOnlyTheOffsetsBits) {
  // Two passes: a variance from sums of squares would lose everything here.
  Matrix x = Matrix::random(1, 128);
  const Matrix ones = Matrix::random(1, 128);
  Matrix plain(1, 128);
  Matrix shifted(1, 128);
  Matrix gamma(1, 128);
  gamma.fill(1.0f);
  const Matrix beta(1, 128);
  table().layer_norm(norm(x, gamma, beta, plain));
  for (std::int64_t c = 0; c < 128; ++c) x(0, c) += 1000.0f;
  table().layer_norm(norm(x, gamma, beta, shifted));
  // x + 1000 is rounded to a multiple of 2^-14, and so is the mean.
  for (std::int64_t c = 0; c < 128; ++c) EXPECT_NEAR(shifted(0, c), plain(0, c), 3 * 0x1p-14);
}

TEST_P(NormalizeKernel, LayerNormWorksInPlaceAndWithoutGammaAndBeta) {
  const Matrix x = Matrix::random(3, 37);
  Matrix ones(1, 37);
  ones.fill(1.0f);
  const Matrix zeros(1, 37);
  Matrix apart(3, 37);
  table().layer_norm(norm(x, ones, zeros, apart));
  Matrix in_place = x;
  LayerNormArgs args = norm(in_place, ones, zeros, in_place);
  args.gamma = nullptr;
  args.beta = nullptr;
  table().layer_norm(args);
  EXPECT_TRUE(in_place.has_same_bits(apart));
}

TEST_P(NormalizeKernel, LayerNormOfOneRowEqualsThatRowOfMany) {
  const Matrix x = Matrix::random(9, 50, 1);
  const Matrix gamma = Matrix::random(1, 50, 0, 2);
  Matrix whole(9, 50);
  table().layer_norm(norm(x, gamma, gamma, whole));
  Matrix parts(9, 50);
  for (std::int64_t r = 0; r < 9; ++r) {
    LayerNormArgs args = norm(x, gamma, gamma, parts);
    args.rows = 1;
    args.x = x.row(r);
    args.y = parts.row(r);
    table().layer_norm(args);
  }
  EXPECT_TRUE(parts.has_same_bits(whole));
}

TEST_P(NormalizeKernel, RmsNormAgreesWithADoubleLoop) {
  for (const std::int64_t n : kWidths) {
    SCOPED_TRACE(n);
    const Matrix x = Matrix::random(4, n, 3, 1);
    const Matrix gamma = Matrix::random(1, n, 0, 3);
    Matrix y(4, n, 2);
    Matrix rstd(1, 4);
    table().rms_norm({.rows = 4,
                      .n = n,
                      .x = x.data(),
                      .x_stride = x.stride(),
                      .gamma = gamma.data(),
                      .eps = 1e-6f,
                      .y = y.data(),
                      .y_stride = y.stride(),
                      .rstd = rstd.data()});
    for (std::int64_t r = 0; r < 4; ++r) {
      double squares = 0;
      for (std::int64_t c = 0; c < n; ++c) squares += double{x(r, c)} * double{x(r, c)};
      const double exact_rstd = 1 / std::sqrt(squares / static_cast<double>(n) + double{1e-6f});
      EXPECT_NEAR(rstd(0, r), exact_rstd, norm_bound(n) * exact_rstd);
      for (std::int64_t c = 0; c < n; ++c)
        ASSERT_NEAR(y(r, c), x(r, c) * exact_rstd * gamma(0, c),
                    norm_bound(n) * std::max(1.0, std::abs(double{gamma(0, c)})));
    }
    EXPECT_TRUE(y.guards_are_intact());
  }
}

TEST_P(NormalizeKernel, SoftmaxAndItsLogarithmAgreeWithADoubleLoop) {
  for (const std::int64_t n : kWidths) {
    SCOPED_TRACE(n);
    const Matrix x = Matrix::random(4, n, 3, 1);
    Matrix weights(4, n, 2);
    Matrix logs(4, n, 1);
    table().softmax_rows(rows(x, weights));
    table().log_softmax_rows(rows(x, logs));
    for (std::int64_t r = 0; r < 4; ++r) {
      double total = 0;
      for (std::int64_t c = 0; c < n; ++c) total += std::exp(double{x(r, c)});
      for (std::int64_t c = 0; c < n; ++c) {
        const double exact = std::exp(double{x(r, c)}) / total;
        // The difference from the largest is below 8, so rounding it moves a weight by 8 units;
        // exp, the sum and the division add the rest.
        const double units = static_cast<double>(n) / 4 + 20;
        ASSERT_NEAR(weights(r, c), exact, units * kUnit * exact);
        ASSERT_NEAR(logs(r, c), std::log(exact), (units + 16) * kUnit);
      }
    }
    EXPECT_TRUE(weights.guards_are_intact());
    EXPECT_TRUE(logs.guards_are_intact());
  }
}

TEST_P(NormalizeKernel, SoftmaxHandlesInfiniteAndEnormousNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Matrix x(1, 4);
  x(0, 0) = 3e38f;
  x(0, 1) = -kInfinity;
  x(0, 2) = -3e38f;
  x(0, 3) = 3e38f;
  Matrix y(1, 4);
  table().softmax_rows(rows(x, y));
  EXPECT_EQ(y(0, 0), 0.5f);
  EXPECT_EQ(y(0, 1), 0.0f);
  EXPECT_EQ(y(0, 2), 0.0f);
  EXPECT_EQ(y(0, 3), 0.5f);
}

TEST_P(NormalizeKernel, ANanReachesItsWholeRowAndNoOther) {
  Matrix x = Matrix::random(3, 21);
  x(1, 20) = std::numeric_limits<float>::quiet_NaN();
  Matrix ones(1, 21);
  Matrix normalized(3, 21);
  Matrix weights(3, 21);
  Matrix logs(3, 21);
  table().layer_norm(norm(x, ones, ones, normalized));
  table().softmax_rows(rows(x, weights));
  table().log_softmax_rows(rows(x, logs));
  for (const Matrix* y : {&normalized, &weights, &logs})
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t c = 0; c < 21; ++c) EXPECT_EQ(std::isnan((*y)(r, c)), r == 1);
}

INSTANTIATE_TEST_SUITE_P(, NormalizeKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
