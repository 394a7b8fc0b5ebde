#include "lathe/study/math/cma_es.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/study/math/keyed_random.h"
#include "lathe/study/math/symmetric_eigen.h"

namespace lathe::study {
namespace {

TEST(SymmetricEigen, PutsTheMatrixTogetherAgain) {
  const int n = 6;
  KeyedRandom random(3, 0, "matrix");
  std::vector<double> matrix(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) matrix[i * n + j] = matrix[j * n + i] = random.next() - 0.5;
  const SymmetricEigen eigen = symmetric_eigen(matrix, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double product = 0;
      double inner = 0;
      for (int k = 0; k < n; ++k) {
        product += eigen.vectors[i * n + k] * eigen.values[k] * eigen.vectors[j * n + k];
        inner += eigen.vectors[k * n + i] * eigen.vectors[k * n + j];
      }
      EXPECT_NEAR(product, matrix[i * n + j], 1e-14);
      EXPECT_NEAR(inner, i == j ? 1 : 0, 1e-14);
    }
  }
}

// Runs generations and gives the best loss seen.
template <typename Loss>
double best_after(CmaEs& strategy, int generations, const Loss& loss) {
  double best = INFINITY;
  for (int g = 0; g < generations; ++g) {
    std::vector<CmaEs::Solution> solutions;
    for (int k = 0; k < strategy.population(); ++k) {
      KeyedRandom random(11, g * 1000 + k, "test");
      const std::vector<double> point = strategy.sample(random);
      solutions.push_back({point, loss(strategy.evaluated(point))});
      best = std::min(best, solutions.back().loss);
    }
    strategy.update(std::move(solutions));
  }
  return best;
}

TEST(CmaEs, LearnsAnEllipsoidThatIsAThousandTimesLongerThanWide) {
  CmaEs strategy(std::vector<double>(5, 0.5), 0.2, 0, std::vector<std::vector<double>>(5));
  const double best = best_after(strategy, 300, [](const std::vector<double>& x) {
    double sum = 0;
    for (int i = 0; i < 5; ++i) {
      // Turned, so that no coordinate alone tells anything.
      const double along = (x[i] - 0.3) + (x[(i + 1) % 5] - 0.3) / 2;
      sum += std::pow(1000.0, 2 * i / 4.0) * along * along;
    }
    return sum;
  });
  EXPECT_LT(best, 1e-12);
}

TEST(CmaEs, StaysInTheCubeWhenTheOptimumIsInACorner) {
  CmaEs strategy({0.5, 0.5}, 0.2, 0, {{}, {}});
  const double best = best_after(strategy, 60, [](const std::vector<double>& x) {
    EXPECT_GE(x[0], 0);
    EXPECT_LE(x[1], 1);
    return x[0] - x[1];
  });
  EXPECT_NEAR(best, -1, 1e-3);
}

TEST(CmaEs, KeepsLeavingACellWhileTheOtherCoordinatesConverge) {
  // Two cells: the wrong one looks good until the continuous coordinate is right.
  const auto loss = [](const std::vector<double>& x) {
    const double distance = std::abs(x[1] - 0.2);
    return distance + (x[0] > 0.5 ? (distance < 1e-3 ? -1 : 0.02) : 0);
  };
  CmaEs with_margin({0.5, 0.5}, 0.2, 10, {{0.5}, {}});
  EXPECT_LT(best_after(with_margin, 100, loss), -0.99);
}

TEST(CmaEs, SaysWhenItHasConverged) {
  CmaEs strategy({0.5, 0.5}, 0.2, 0, {{}, {}});
  const auto sphere = [](const std::vector<double>& x) {
    return (x[0] - 0.4) * (x[0] - 0.4) + (x[1] - 0.6) * (x[1] - 0.6);
  };
  best_after(strategy, 20, sphere);
  EXPECT_FALSE(strategy.has_converged());
  best_after(strategy, 180, sphere);
  EXPECT_TRUE(strategy.has_converged());
}

}  // namespace
}  // namespace lathe::study
