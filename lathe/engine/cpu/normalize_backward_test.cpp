#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kWidths[] = {2, 3, 7, 16, 17, 31, 64, 100, 128, 300};
constexpr std::int64_t kRows = 11;  // more than a group of eight
constexpr float kEps = 1e-3f;

// The inputs of one case and the gradients in double.
struct Problem {
  Matrix dy, x, gamma, dx_add, start;
  Matrix dx;
  std::vector<double> dgamma, dbeta;
  std::vector<double> magnitude;  // of the terms of dgamma

  Problem(std::int64_t n, bool centered, bool with_gamma, bool with_add)
      : dy(Matrix::random(kRows, n, 1, 1)),
        x(Matrix::random(kRows, n, 3, 2)),
        gamma(Matrix::random(1, n, 0, 3)),
        dx_add(Matrix::random(kRows, n, 2, 4)),
        start(Matrix::random(1, n, 0, 5)),
        dx(kRows, n),
        dgamma(start.row(0), start.row(0) + n),
        dbeta(dgamma),
        magnitude(static_cast<std::size_t>(n), 4.0) {
    const auto width = static_cast<double>(n);
    for (std::int64_t r = 0; r < kRows; ++r) {
      double mean = 0;
      double variance = 0;
      for (std::int64_t c = 0; c < n && centered; ++c) mean += x(r, c) / width;
      for (std::int64_t c = 0; c < n; ++c) variance += (x(r, c) - mean) * (x(r, c) - mean) / width;
      const double rstd = 1 / std::sqrt(variance + double{kEps});
      double mean_g = 0;
      double mean_gu = 0;
      for (std::int64_t c = 0; c < n; ++c) {
        const double g = double{dy(r, c)} * (with_gamma ? double{gamma(0, c)} : 1.0);
        const double u = (x(r, c) - mean) * rstd;
        if (centered) mean_g += g / width;
        mean_gu += g * u / width;
        dgamma[c] += dy(r, c) * u;
        dbeta[c] += dy(r, c);
        magnitude[c] += std::abs(dy(r, c)) * (1 + std::abs(u));
      }
      for (std::int64_t c = 0; c < n; ++c) {
        const double g = double{dy(r, c)} * (with_gamma ? double{gamma(0, c)} : 1.0);
        const double u = (x(r, c) - mean) * rstd;
        dx(r, c) = static_cast<float>(rstd * (g - mean_g - u * mean_gu) +
                                      (with_add ? double{dx_add(r, c)} : 0.0));
      }
    }
  }
};

// Sums of n terms by lanes take at most n/4 + 6 additions in a row. For these numbers, below 4 in
// magnitude, rstd is below 32 (eps) and every intermediate of dx below 8 rstd^2. A sum over the
// rows is as far off as its worst term, relative to the magnitudes of the terms.
double bound(std::int64_t n, double rstd) {
  return (static_cast<double>(n) / 4 + 30) * kUnit * 8 * std::max(1.0, rstd * rstd);
}

double rstd_of(const Matrix& x, std::int64_t r, bool centered) {
  const auto width = static_cast<double>(x.columns());
  double mean = 0;
  double variance = 0;
  for (std::int64_t c = 0; c < x.columns() && centered; ++c) mean += x(r, c) / width;
  for (std::int64_t c = 0; c < x.columns(); ++c)
    variance += (x(r, c) - mean) * (x(r, c) - mean) / width;
  return 1 / std::sqrt(variance + double{kEps});
}

double largest_rstd(const Matrix& x, bool centered) {
  double largest = 0;
  for (std::int64_t r = 0; r < x.rows(); ++r) largest = std::max(largest, rstd_of(x, r, centered));
  return largest;
}

class NormalizeBackwardKernel : public EveryIsa {
 protected:
  static NormBackwardArgs layer_norm(const Problem& problem, Matrix& dx, Matrix& dgamma,
                                     Matrix& dbeta) {
    return {.rows = kRows,
            .n = problem.x.columns(),
            .dy = problem.dy.data(),
            .dy_stride = problem.dy.stride(),
            .x = problem.x.data(),
            .x_stride = problem.x.stride(),
            .gamma = problem.gamma.data(),
            .eps = kEps,
            .dx_add = nullptr,
            .dx_add_stride = problem.dx_add.stride(),
            .dx = dx.data(),
            .dx_stride = dx.stride(),
            .dgamma = dgamma.data(),
            .dbeta = dbeta.data()};
  }
};

TEST_P(NormalizeBackwardKernel, LayerNormAgreesWithADoubleLoop) {
  for (const std::int64_t n : kWidths)
    for (const bool with_gamma : {true, false})
      for (const bool with_add : {false, true}) {
        SCOPED_TRACE(testing::Message() << "width " << n << " gamma " << with_gamma);
        const Problem problem(n, true, with_gamma, with_add);
        Matrix dx(kRows, n, 4);
        Matrix dgamma = problem.start;
        Matrix dbeta = problem.start;
        NormBackwardArgs args = layer_norm(problem, dx, dgamma, dbeta);
        if (!with_gamma) args.gamma = nullptr;
        if (with_add) args.dx_add = problem.dx_add.data();
        table().layer_norm_backward(args);
        const double worst = bound(n, largest_rstd(problem.x, true));
        for (std::int64_t c = 0; c < n; ++c) {
          for (std::int64_t r = 0; r < kRows; ++r)
            ASSERT_NEAR(dx(r, c), problem.dx(r, c), bound(n, rstd_of(problem.x, r, true)));
          ASSERT_NEAR(dgamma(0, c), problem.dgamma[c], worst * problem.magnitude[c]);
          ASSERT_NEAR(dbeta(0, c), problem.dbeta[c], 8 * kUnit * problem.magnitude[c]);
        }
        EXPECT_TRUE(dx.guards_are_intact());
        EXPECT_TRUE(dgamma.guards_are_intact());
        EXPECT_TRUE(dbeta.guards_are_intact());
      }
}

TEST_P(NormalizeBackwardKernel, RmsNormAgreesWithADoubleLoop) {
  for (const std::int64_t n : kWidths)
    for (const bool with_gamma : {true, false})
      for (const bool with_add : {false, true}) {
        SCOPED_TRACE(testing::Message() << "width " << n << " gamma " << with_gamma);
        const Problem problem(n, false, with_gamma, with_add);
        Matrix dx(kRows, n, 4);
        Matrix dgamma = problem.start;
        table().rms_norm_backward({.rows = kRows,
                                   .n = n,
                                   .dy = problem.dy.data(),
                                   .dy_stride = problem.dy.stride(),
                                   .x = problem.x.data(),
                                   .x_stride = problem.x.stride(),
                                   .gamma = with_gamma ? problem.gamma.data() : nullptr,
                                   .eps = kEps,
                                   .dx_add = with_add ? problem.dx_add.data() : nullptr,
                                   .dx_add_stride = problem.dx_add.stride(),
                                   .dx = dx.data(),
                                   .dx_stride = dx.stride(),
                                   .dgamma = dgamma.data(),
                                   .dbeta = nullptr});
        const double worst = bound(n, largest_rstd(problem.x, false));
        for (std::int64_t c = 0; c < n; ++c) {
          for (std::int64_t r = 0; r < kRows; ++r)
            ASSERT_NEAR(dx(r, c), problem.dx(r, c), bound(n, rstd_of(problem.x, r, false)));
          ASSERT_NEAR(dgamma(0, c), problem.dgamma[c], worst * problem.magnitude[c]);
        }
        EXPECT_TRUE(dx.guards_are_intact());
        EXPECT_TRUE(dgamma.guards_are_intact());
      }
}

TEST_P(NormalizeBackwardKernel, WorksInPlaceAndWithoutParameterGradients) {
  const Problem problem(45, true, true, false);
  Matrix apart(kRows, 45);
  Matrix dgamma(1, 45);
  Matrix dbeta(1, 45);
  table().layer_norm_backward(layer_norm(problem, apart, dgamma, dbeta));
  Problem copy = problem;
  NormBackwardArgs args = layer_norm(copy, copy.dy, dgamma, dbeta);
  args.dgamma = nullptr;
  args.dbeta = nullptr;
  table().layer_norm_backward(args);
  EXPECT_TRUE(copy.dy.has_same_bits(apart));
  // And adding to what dx holds.
  Matrix added = problem.dx_add;
  args = layer_norm(problem, added, dgamma, dbeta);
  args.dx_add = added.data();
  table().layer_norm_backward(args);
  EXPECT_EQ(added(2, 3), apart(2, 3) + problem.dx_add(2, 3));
}

TEST_P(NormalizeBackwardKernel, RowsInSeveralCallsHaveTheBitsOfOne) {
  const Problem problem(50, true, true, false);
  Matrix dx(kRows, 50);
  Matrix dgamma(1, 50);
  Matrix dbeta(1, 50);
  table().layer_norm_backward(layer_norm(problem, dx, dgamma, dbeta));
  Matrix dx_parts(kRows, 50);
  Matrix dgamma_parts(1, 50);
  Matrix dbeta_parts(1, 50);
  for (std::int64_t r = 0; r < kRows; ++r) {
    NormBackwardArgs args = layer_norm(problem, dx_parts, dgamma_parts, dbeta_parts);
    args.rows = 1;
    args.dy = problem.dy.row(r);
    args.x = problem.x.row(r);
    args.dx = dx_parts.row(r);
    table().layer_norm_backward(args);
  }
  EXPECT_TRUE(dx_parts.has_same_bits(dx));
  EXPECT_TRUE(dgamma_parts.has_same_bits(dgamma));
  EXPECT_TRUE(dbeta_parts.has_same_bits(dbeta));
}

INSTANTIATE_TEST_SUITE_P(, NormalizeBackwardKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
