#include "lathe/study/math/truncated_normal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::study {
namespace {

// Expected values are SciPy's log_ndtr.
TEST(TruncatedNormal, KnowsBothTailsInLogarithms) {
  EXPECT_NEAR(log_normal_cdf(0), -0.6931471805599453, 1e-15);
  EXPECT_NEAR(log_normal_cdf(-3) / -6.60772622151035, 1, 1e-14);
  EXPECT_NEAR(log_normal_cdf(-19.99) / -203.71670771720844, 1, 1e-14);
  EXPECT_NEAR(log_normal_cdf(-20) / -203.9171553710973, 1, 1e-14);
  EXPECT_NEAR(log_normal_cdf(-40) / -804.6084420137539, 1, 1e-14);
  EXPECT_NEAR(log_normal_cdf(9) / -1.1285884059538324e-19, 1, 1e-12);
}

// The two formulas of the left tail meet at -20.
TEST(TruncatedNormal, IsSmoothWhereTheFormulaChanges) {
  const double slope = log_normal_cdf(-20 + 1e-6) - log_normal_cdf(-20 - 1e-6);
  EXPECT_NEAR(slope / 2e-6, 20.05, 0.01);
}

TEST(TruncatedNormal, MeasuresIntervalsAnywhere) {
  EXPECT_NEAR(log_normal_mass(-3, -1), -1.84956642, 1e-8);
  EXPECT_NEAR(log_normal_mass(1, 5), -1.84102345, 1e-8);
  EXPECT_NEAR(log_normal_mass(-40, -30), -454.32124396, 1e-7);
  EXPECT_NEAR(log_normal_mass(-1, 1), std::log(std::erf(1 / std::sqrt(2.0))), 1e-14);
}

TEST(TruncatedNormal, InvertsItself) {
  for (double x = -35; x < 5; x += 0.37)
    EXPECT_NEAR(inverse_log_normal_cdf(log_normal_cdf(x)), x, 1e-9 * (1 + std::abs(x))) << x;
}

TEST(TruncatedNormal, CutsAnIntervalAtTheGivenShare) {
  for (const auto& [a, b] : {std::pair{-2.0, 3.0}, {-9.0, -8.0}, {8.0, 9.0}, {30.0, 40.0}}) {
    for (const double u : {0.001, 0.3, 0.7, 0.999}) {
      const double x = truncated_normal_quantile(u, a, b);
      ASSERT_GT(x, a);
      ASSERT_LT(x, b);
      EXPECT_NEAR(log_normal_mass(a, x) - log_normal_mass(a, b), std::log(u), 1e-7)
          << a << " " << u;
    }
    EXPECT_EQ(truncated_normal_quantile(0, a, b), a);
    EXPECT_EQ(truncated_normal_quantile(1, a, b), b);
  }
}

}  // namespace
}  // namespace lathe::study
