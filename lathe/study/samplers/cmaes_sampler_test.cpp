#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

double best_of(const History& history) {
  double best = INFINITY;
  for (const TrialRecord& trial : history.trials()) best = std::min(best, trial.values[0]);
  return best;
}

Space mixed_space() {
  return {{"x", shared(FloatDistribution{-5, 5})},
          {"rate", shared(FloatDistribution{1e-4, 1, true})},
          {"depth", shared(IntDistribution{1, 12})},
          {"kind", shared(CategoricalDistribution{{std::string("a"), std::string("b")}})}};
}

std::vector<double> mixed_loss(const Assignment& point) {
  const double x = find_parameter(point, "x")->value - 2;
  const double rate = std::log10(find_parameter(point, "rate")->value) + 2;
  const double depth = find_parameter(point, "depth")->value - 9;
  return {x * x + rate * rate + depth * depth + find_parameter(point, "kind")->value};
}

TEST(CmaesSampler, FindsTheMiddleOfAMixedBowl) {
  History history({Direction::Minimize});
  run_sampler("cmaes", mixed_space(), history, 300, 5, mixed_loss);
  EXPECT_LT(best_of(history), 1e-2);
}

TEST(CmaesSampler, AProcessThatKnowsOnlyTheHistoryGoesOnTheSame) {
  History one({Direction::Minimize});
  History many({Direction::Minimize});
  run_sampler("cmaes", mixed_space(), one, 60, 5, mixed_loss);
  run_sampler("cmaes", mixed_space(), many, 60, 5, mixed_loss, /*is_forgetful=*/true);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(one.trials()[i].values, many.trials()[i].values) << i;
}

TEST(CmaesSampler, AResultThatComesLateIsTakenIntoAccount) {
  const Space space = {{"x", shared(FloatDistribution{})}, {"y", shared(FloatDistribution{})}};
  const auto loss = [](const Assignment& point) {
    return std::vector{std::hypot(point[0].value - 0.7, point[1].value - 0.1)};
  };
  History whole({Direction::Minimize});
  run_sampler("cmaes", space, whole, 20, 5, loss);

  // The same trials, but number 2 stays in work until after the second generation was over.
  History late({Direction::Minimize});
  late.change([&](auto& trials) {
    trials.assign(whole.trials().begin(), whole.trials().end());
    trials[2].state = TrialState::Running;
  });
  auto sampler = make_sampler("cmaes", 5, &space);
  Proposal proposal{.seed = 5, .number = 20, .space = &space};
  const Assignment without = sampler->propose(late, proposal);
  late.change([&](auto& trials) { trials[2].state = TrialState::Complete; });
  const Assignment with = sampler->propose(late, proposal);
  const Assignment fresh = make_sampler("cmaes", 5, &space)->propose(whole, proposal);
  EXPECT_NE(without[0].value, with[0].value);
  EXPECT_EQ(with[0].value, fresh[0].value);
}

TEST(CmaesSampler, StartsWhereTheUserAskedItTo) {
  const Space space = {{"x", shared(FloatDistribution{0, 100})},
                       {"y", shared(FloatDistribution{0, 100})}};
  History history({Direction::Minimize});
  add_finished(history, {{"x", space[0].distribution, 90}, {"y", space[1].distribution, 10}}, {1},
               {{"fixed_params", R"({"x": 90, "y": 10})"}});
  auto sampler = make_sampler("cmaes:sigma=0.001", 5, &space);
  const Assignment point = sampler->propose(history, {.seed = 5, .number = 1, .space = &space});
  EXPECT_NEAR(point[0].value, 90, 1);
  EXPECT_NEAR(point[1].value, 10, 1);
}

TEST(CmaesSampler, PutsWhatViolatesAConstraintLast) {
  const Space space = {{"x", shared(FloatDistribution{})}, {"y", shared(FloatDistribution{})}};
  History history({Direction::Minimize});
  auto sampler = make_sampler("cmaes", 5, &space);
  double best = INFINITY;
  for (int number = 0; number < 200; ++number) {
    Attributes attributes;
    const Assignment point = sampler->propose(
        history, {.seed = 5, .number = number, .space = &space, .system_attributes = &attributes});
    const double sum = point[0].value + point[1].value;
    attributes["constraints"] = fmt::format("[{}]", 0.8 - sum);  // at least 0.8
    if (sum >= 0.8) best = std::min(best, sum);
    add_finished(history, point, {sum}, attributes);
  }
  EXPECT_NEAR(best, 0.8, 0.01);
}

TEST(CmaesSampler, StartsAgainWithALargerPopulationAfterConverging) {
  const Space space = {{"x", shared(FloatDistribution{-5, 5})},
                       {"y", shared(FloatDistribution{-5, 5})}};
  History history({Direction::Minimize});
  run_sampler("cmaes", space, history, 6000, 1, [](const Assignment& point) {
    double sum = 20;
    for (const Parameter& each : point)
      sum += each.value * each.value - 10 * std::cos(2 * M_PI * each.value);
    return std::vector{sum};
  });
  EXPECT_LT(best_of(history), 1e-6);
}

// Medians of Optuna 3.1's CmaEsSampler over 300 seeds; bench/samplers_rival.py has the whole
// comparison.
TEST(CmaesSampler, IsBetterThanOptunasInTheMedianOfFiftySeeds) {
  const auto median = [](int dimension, double low, double high, const auto& function) {
    Space space;
    for (int i = 0; i < dimension; ++i)
      space.push_back({fmt::format("x{}", i), shared(FloatDistribution{low, high})});
    std::vector<double> bests;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      History history({Direction::Minimize});
      run_sampler("cmaes", space, history, 100, seed,
                  [&](const Assignment& point) { return std::vector{function(point)}; });
      bests.push_back(best_of(history));
    }
    std::nth_element(bests.begin(), bests.begin() + 25, bests.end());
    return bests[25];
  };
  EXPECT_LT(median(10, -5, 10,
                   [](const Assignment& x) {
                     double sum = 0;
                     for (std::size_t i = 0; i + 1 < x.size(); ++i)
                       sum += 100 * std::pow(x[i + 1].value - x[i].value * x[i].value, 2) +
                              std::pow(1 - x[i].value, 2);
                     return sum;
                   }),
            2481);
  EXPECT_LT(median(2, 0, 1,
                   [](const Assignment& unit) {  // Branin's
                     const double x = -5 + 15 * unit[0].value;
                     const double y = 15 * unit[1].value;
                     const double bend = y - 5.1 / (4 * M_PI * M_PI) * x * x + 5 / M_PI * x - 6;
                     return bend * bend + 10 * (1 - 1 / (8 * M_PI)) * std::cos(x) + 10;
                   }),
            0.4087);
}

TEST(CmaesSampler, RefusesSeveralObjectives) {
  const Space space = {{"x", shared(FloatDistribution{})}};
  History history({Direction::Minimize, Direction::Minimize});
  try {
    make_sampler("cmaes", 5, &space)->propose(history, {.seed = 5, .space = &space});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(),
              "sampler \"cmaes\": expected one objective, the study has 2; nsga2 and tpe take "
              "several");
  }
}

}  // namespace
}  // namespace lathe::study
