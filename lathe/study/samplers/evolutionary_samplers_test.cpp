// The samplers that breed or climb: nsga2, evolution and local.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lathe/study/math/hypervolume.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

double value(const Assignment& point, const char* name) {
  return find_parameter(point, name)->value;
}

// Kind b has a width of its own and is worth it only with the right one: 3 x (1 + 9) points.
Space tree() {
  return {{"kind", shared(CategoricalDistribution{{std::string("a"), std::string("b")}})},
          {"width", shared(IntDistribution{1, 9}), "kind", {1}},
          {"depth", shared(IntDistribution{1, 3})}};
}

std::vector<double> tree_loss(const Assignment& point) {
  const double depth = std::abs(value(point, "depth") - 2);
  if (value(point, "kind") == 0) return {4 + depth};
  return {std::abs(value(point, "width") - 7) + depth};
}

class EverySearcher : public ::testing::TestWithParam<const char*> {};

TEST_P(EverySearcher, GoesOnTheSameInAProcessThatKnowsOnlyTheHistory) {
  History one({Direction::Minimize});
  History many({Direction::Minimize});
  run_sampler(GetParam(), tree(), one, 28, 5, tree_loss);
  run_sampler(GetParam(), tree(), many, 28, 5, tree_loss, /*is_forgetful=*/true);
  for (int i = 0; i < 28; ++i)
    EXPECT_EQ(point_key(one.trials()[i].parameters), point_key(many.trials()[i].parameters)) << i;
}

TEST_P(EverySearcher, ProposesOnlyWhatTheSpaceHas) {
  const Space space = tree();
  History history({Direction::Minimize});
  auto sampler = make_sampler(GetParam(), 3, &space);
  for (int number = 0; number < 40; ++number) {
    const Assignment point =
        sampler->propose(history, {.seed = 3, .number = number, .space = &space});
    EXPECT_EQ(find_parameter(point, "width") != nullptr, value(point, "kind") == 1);
    for (const Parameter& parameter : point)
      EXPECT_TRUE(contains(*parameter.distribution, parameter.value));
    add_finished(history, point, tree_loss(point));
  }
}

TEST_P(EverySearcher, WorksWithoutADeclaredSpace) {
  const Space space = {{"x", shared(FloatDistribution{})}, {"n", shared(IntDistribution{1, 64})}};
  History history({Direction::Maximize});
  run_sampler(
      GetParam(), space, history, 300, 9,
      [](const Assignment& point) {
        return std::vector{-std::abs(value(point, "x") - 0.3) -
                           std::abs(value(point, "n") - 50) / 10};
      },
      false, false);
  double best = -INFINITY;
  for (const TrialRecord& trial : history.trials()) best = std::max(best, trial.values[0]);
  EXPECT_GT(best, -0.05);
}

INSTANTIATE_TEST_SUITE_P(Searchers, EverySearcher,
                         ::testing::Values("nsga2:population=8", "nsga2:population=8,crossover=sbx",
                                           "evolution:population=8,tournament=3", "local"));

TEST(LocalSampler, TriesEveryPointOnceAndThenIsExhausted) {
  const Space space = tree();
  History history({Direction::Minimize});
  auto sampler = make_sampler("local", 5, &space);
  EXPECT_FALSE(sampler->is_exhausted(history));
  run_sampler("local", space, history, 30, 5, tree_loss);
  std::set<std::uint64_t> keys;
  for (const TrialRecord& trial : history.trials()) keys.insert(point_key(trial.parameters));
  EXPECT_EQ(keys.size(), 30u);
  EXPECT_TRUE(sampler->is_exhausted(history));
}

TEST(LocalSampler, DoesNotTakeAPointThatAnotherWorkerIsTrying) {
  const Space space = {{"x", shared(IntDistribution{1, 3})}};
  History history({Direction::Minimize});
  history.change([&](auto& trials) {
    trials.resize(2);
    trials[1].number = 1;
    trials[0].parameters = {{"x", space[0].distribution, 1}};
    trials[1].parameters = {{"x", space[0].distribution, 3}};
  });
  auto sampler = make_sampler("local", 5, &space);
  EXPECT_EQ(sampler->propose(history, {.seed = 5, .number = 2, .space = &space})[0].value, 2);
}

// ZDT1 in six dimensions: the front is y = 1 - sqrt(x) where all but the first are zero.
std::vector<double> zdt1(const Assignment& point) {
  double sum = 0;
  for (std::size_t i = 1; i < point.size(); ++i) sum += point[i].value;
  const double g = 1 + 9 * sum / static_cast<double>(point.size() - 1);
  return {point[0].value, g * (1 - std::sqrt(point[0].value / g))};
}

double zdt1_hypervolume(const char* sampler, int trials) {
  Space space;
  for (int i = 0; i < 6; ++i) space.push_back({fmt::format("x{}", i), shared(FloatDistribution{})});
  History history({Direction::Minimize, Direction::Minimize});
  run_sampler(sampler, space, history, trials, 2, zdt1);
  std::vector<Losses> points;
  for (const TrialRecord& trial : history.trials()) points.push_back(trial.values);
  return hypervolume(points, {1.1, 1.1});
}

TEST(Nsga2Sampler, ComesNearTheFrontOfATestProblem) {
  // The front itself has 1.1 * 1.1 - 1/3 = 0.877.
  const double random = zdt1_hypervolume("random", 1000);
  EXPECT_LT(random, 0.3);
  EXPECT_GT(zdt1_hypervolume("nsga2", 1000), 0.6);
  EXPECT_GT(zdt1_hypervolume("nsga2:crossover=sbx", 1000), 0.8);
}

TEST(Nsga2Sampler, PutsWhatViolatesAConstraintLast) {
  const Space space = {{"x", shared(FloatDistribution{})}, {"y", shared(FloatDistribution{})}};
  History history({Direction::Minimize, Direction::Minimize});
  auto sampler = make_sampler("nsga2:population=10,crossover=sbx", 5, &space);
  int num_kept = 0;
  for (int number = 0; number < 200; ++number) {
    Attributes attributes;
    const Assignment point = sampler->propose(
        history, {.seed = 5, .number = number, .space = &space, .system_attributes = &attributes});
    const double excess = 1.5 - value(point, "x") - value(point, "y");
    attributes["constraints"] = fmt::format("[{}]", excess);
    if (number >= 100) num_kept += excess <= 0 ? 1 : 0;
    add_finished(history, point, {value(point, "x"), value(point, "y")}, attributes);
  }
  EXPECT_GT(num_kept,
            40);  // an eighth of the space holds, next to none near the unconstrained front
}

TEST(Nsga2Sampler, TakesTheTrialsOfAnotherSamplerForItsFirstGeneration) {
  const Space space = {{"x", shared(FloatDistribution{})}};
  History history({Direction::Minimize});
  run_sampler("random", space, history, 10, 5,
              [](const Assignment& point) { return std::vector{point[0].value}; });
  Attributes attributes;
  make_sampler("nsga2:population=10", 5, &space)
      ->propose(history,
                {.seed = 5, .number = 10, .space = &space, .system_attributes = &attributes});
  EXPECT_EQ(attributes.at("lathe:nsga2:generation"), "1");
}

TEST(EvolutionSampler, ChangesOneParameterOfARecentTrial) {
  Space space;
  for (int i = 0; i < 6; ++i)
    space.push_back({fmt::format("x{}", i), shared(IntDistribution{0, 4})});
  History history({Direction::Minimize});
  run_sampler("evolution:population=10,tournament=10", space, history, 11, 5,
              [](const Assignment& point) {
                double sum = 0;
                for (const Parameter& each : point) sum += each.value;
                return std::vector{sum};
              });
  // With a tournament of all, the parent of trial 10 is the best of the first ten.
  const TrialRecord* best = &history.trials()[0];
  for (int i = 1; i < 10; ++i)
    if (history.trials()[i].values < best->values) best = &history.trials()[i];
  int num_changed = 0;
  for (int i = 0; i < 6; ++i)
    num_changed += history.trials()[10].parameters[i].value != best->parameters[i].value ? 1 : 0;
  EXPECT_EQ(num_changed, 1);
}

}  // namespace
}  // namespace lathe::study
