#include "lathe/study/samplers/parzen_estimator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lathe/study/math/keyed_random.h"

namespace lathe::study {
namespace {

const Axis kLogInt = make_axis(IntDistribution{.low = 1, .high = 512, .log = true});
const Axis kStepInt = make_axis(IntDistribution{.low = 2, .high = 16, .step = 2});
const KernelOptions kOptuna3{.discrete_log = false, .divides_by_width = false};

KernelOptions with(KernelOptions options, Bandwidth bandwidth) {
  options.bandwidth = bandwidth;
  return options;
}

// The expected densities are those of Optuna 3.1's estimator.
TEST(ParzenEstimator, AgreesWithOptunaOnOneNumber) {
  const ParzenEstimator estimator({kLogInt}, {{3, 20}}, std::vector<double>{1, 1},
                                  with(kOptuna3, Bandwidth::NeighborsWithPrior));
  const std::vector<double> expected = {-0.73355106, -0.56071284, -0.53301056, -0.56204972,
                                        -1.09691119};
  const std::vector<double> densities = estimator.log_density({{1, 3, 15, 21, 500}});
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(densities[i], expected[i], 1e-8);
}

TEST(ParzenEstimator, AgreesWithOptunaOnTwoNumbers) {
  const ParzenEstimator estimator({kLogInt, kStepInt}, {{3, 20}, {4, 16}},
                                  std::vector<double>{1, 1}, with(kOptuna3, Bandwidth::Scott));
  const std::vector<double> expected = {-2.70396466, -2.49884713, -2.69622315, -2.73902918,
                                        -3.09363682};
  const std::vector<double> densities =
      estimator.log_density({{1, 3, 15, 21, 500}, {2, 4, 8, 8, 14}});
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(densities[i], expected[i], 1e-8);
}

// Two categorical and one discrete axis: the probabilities of all points add up to one, whichever
// of the two ways of summing kernels is used.
TEST(ParzenEstimator, GivesProbabilitiesThatSumToOne) {
  for (const bool with_number : {false, true}) {
    std::vector<Axis> axes = {Axis{.num_choices = 3}, Axis{.num_choices = 4}};
    Points observed = {{0, 2, 2, 1}, {3, 3, 0, 1}};
    Points all(2);
    if (with_number) {
      axes.push_back(kStepInt);
      observed.push_back({2, 4, 4, 16});
      all.emplace_back();
    }
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 4; ++b)
        for (int n = 2; n <= (with_number ? 16 : 2); n += 2) {
          all[0].push_back(a);
          all[1].push_back(b);
          if (with_number) all[2].push_back(n);
        }
    const ParzenEstimator estimator(axes, observed, recency_weights(4), {});
    double sum = 0;
    for (const double density : estimator.log_density(all)) sum += std::exp(density);
    EXPECT_NEAR(sum, 1, 1e-12) << with_number;
  }
}

// Frequencies of 20,000 draws against the density itself: five standard deviations.
TEST(ParzenEstimator, DrawsWhatItsDensitySays) {
  const ParzenEstimator estimator({Axis{.num_choices = 3}, kStepInt}, {{0, 2, 2}, {2, 10, 12}},
                                  std::vector<double>{1, 1, 1}, {});
  KeyedRandom random(1, 2, "draws");
  constexpr std::size_t kDraws = 20000;
  const Points drawn = estimator.sample(random, kDraws);
  for (int choice = 0; choice < 3; ++choice)
    for (int number = 2; number <= 16; number += 2) {
      double count = 0;
      for (std::size_t i = 0; i < kDraws; ++i)
        count += drawn[0][i] == choice && drawn[1][i] == number;
      const double density = std::exp(
          estimator.log_density({{static_cast<double>(choice)}, {static_cast<double>(number)}})[0]);
      EXPECT_NEAR(count, density * kDraws, 5 * std::sqrt(density * kDraws)) << choice << number;
    }
}

TEST(ParzenEstimator, IsThePriorWithoutObservations) {
  const ParzenEstimator estimator({Axis{.num_choices = 4}, Axis{.num_choices = 5}}, {{}, {}}, {},
                                  {});
  EXPECT_NEAR(estimator.log_density({{3}, {2}})[0], -std::log(20), 1e-12);
}

TEST(ParzenEstimator, WeighsOldObservationsLess) {
  EXPECT_EQ(recency_weights(3), (std::vector<double>{1, 1, 1}));
  const std::vector<double> weights = recency_weights(28);
  EXPECT_DOUBLE_EQ(weights[0], 1.0 / 28);
  EXPECT_DOUBLE_EQ(weights[1], 0.5 * (1 + 1.0 / 28));
  EXPECT_EQ(weights[2], 1);
  EXPECT_EQ(weights[27], 1);
}

}  // namespace
}  // namespace lathe::study
