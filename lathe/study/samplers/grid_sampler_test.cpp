#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/math/python_set.h"
#include "lathe/study/samplers/grid_points.h"
#include "lathe/study/space_point.h"
#include "lathe/study/testing/test_play.h"

namespace lathe::study {
namespace {

DistributionPtr shared(Distribution distribution) {
  return std::make_shared<const Distribution>(std::move(distribution));
}

CategoricalDistribution list(std::vector<Choice> choices) {
  return {std::move(choices)};
}

Space every_kind() {
  return {
      {"width", shared(list({std::int64_t{4}, std::int64_t{8}, std::int64_t{16}}))},
      {"act", shared(list({std::string("relu"), std::monostate{}, true}))},
      {"lr", shared(FloatDistribution{.low = 0.1, .high = 0.4, .step = 0.1})},
      {"n", shared(IntDistribution{.low = 1, .high = 3, .step = 2})},
  };
}

// The first layer's type decides which of the others exist: 4 + 2 * 3 + 1 = 11 points.
Space conditional() {
  return {
      {"type", shared(IntDistribution{.low = 0, .high = 2})},
      {"width", shared(IntDistribution{.low = 1, .high = 4}), "type", {0}},
      {"block", shared(IntDistribution{.low = 1, .high = 2}), "type", {1}},
      {"fraction", shared(IntDistribution{.low = 5, .high = 7}), "type", {1}},
  };
}

Play::Objective zero(const Space& space) {
  return [&space](const Play::Suggest& suggest, TrialRecord& trial) {
    for (const SpaceParameter& parameter : space)
      if (is_present(parameter, trial.parameters)) suggest(parameter.name, *parameter.distribution);
    trial.values = {0};
  };
}

// Recorded from GridSampler(seed=11) of Optuna 3.1.0: all 72 points, where the last ones depend on
// how Python orders a small set of large numbers.
TEST(GridSampler, RepeatsOptunasOrderUnderThePreset) {
  const std::vector<int> expected = {25, 64, 56, 13, 35, 26, 52, 36, 50, 49, 71, 4,  40, 14, 1,
                                     12, 47, 69, 53, 27, 22, 38, 33, 23, 5,  9,  67, 0,  28, 57,
                                     42, 48, 11, 46, 19, 58, 30, 16, 34, 2,  20, 32, 61, 55, 7,
                                     51, 10, 44, 68, 66, 45, 70, 24, 62, 15, 31, 6,  65, 8,  59,
                                     17, 63, 21, 37, 43, 54, 29, 18, 60, 39, 41, 3};
  const Space space = every_kind();
  const auto sampler = make_sampler("grid:preset=optuna-3", 11, &space);
  Play play(*sampler, 11, {Direction::Minimize}, &space);
  for (const int id : expected) {
    ASSERT_FALSE(sampler->is_exhausted(play.history()));
    const TrialRecord& trial = play.run(zero(space));
    EXPECT_EQ(trial.system_attributes.at("grid_id"), std::to_string(id));
    EXPECT_EQ(trial.system_attributes.at("search_space"),
              R"({"act": ["relu", null, true], "lr": [0.1, 0.2, 0.30000000000000004, 0.4], )"
              R"("n": [1, 3], "width": [4, 8, 16]})");
  }
  EXPECT_TRUE(sampler->is_exhausted(play.history()));
  // The second trial: width 8, act true, lr 0.3, n 3.
  const TrialRecord& trial = play.history().trials()[1];
  EXPECT_EQ(trial.find("width")->value, 1);
  EXPECT_EQ(trial.find("act")->value, 2);
  EXPECT_EQ(trial.find("lr")->value, 0.30000000000000004);
  EXPECT_EQ(trial.find("n")->value, 3);
}

TEST(GridSampler, VisitsEveryPointOnceWhateverTheConditions) {
  const Space space = conditional();
  const auto sampler = make_sampler("grid", 4, &space);
  Play play(*sampler, 4, {Direction::Minimize}, &space);
  std::set<std::uint64_t> keys;
  for (int i = 0; i < 11; ++i) {
    ASSERT_FALSE(sampler->is_exhausted(play.history()));
    ASSERT_TRUE(keys.insert(point_key(play.run(zero(space)).parameters)).second);
  }
  EXPECT_TRUE(sampler->is_exhausted(play.history()));
}

TEST(GridSampler, FillsTheHolesThatOtherTrialsLeave) {
  const Space space = conditional();
  const auto sampler = make_sampler("grid", 4, &space);
  History history({Direction::Minimize});
  history.change([&](auto& trials) {  // the user asked for these first
    for (int i = 0; i < 3; ++i)
      trials.push_back({.number = i, .state = TrialState::Complete, .values = {0}});
  });
  std::set<std::uint64_t> keys;
  for (int number = 3; number < 14; ++number) {
    ASSERT_FALSE(sampler->is_exhausted(history));
    TrialRecord trial{.number = number, .state = TrialState::Complete, .values = {0}};
    keys.insert(point_key(sampler->propose(
        history, {.number = number, .system_attributes = &trial.system_attributes})));
    history.change([&](auto& trials) { trials.push_back(trial); });
  }
  EXPECT_EQ(keys.size(), 11u);
  EXPECT_TRUE(sampler->is_exhausted(history));
}

TEST(GridSampler, WalksAGridOfBillionsWithoutListingIt) {
  Space space;
  for (int i = 0; i < 25; ++i)
    space.push_back({"w" + std::to_string(i), shared(IntDistribution{.low = 2, .high = 5})});
  const auto sampler = make_sampler("grid", 9, &space);  // 4^25, about 1.1e15
  const History history({Direction::Minimize});
  std::set<std::uint64_t> keys;
  for (int number = 0; number < 200; ++number)
    keys.insert(point_key(sampler->propose(history, {.number = number})));
  EXPECT_EQ(keys.size(), 200u);
}

// Of 2^4 + 2^20 points almost all have twenty choices; a short walk sees both depths as often.
TEST(GridSampler, TakesTurnsBetweenValuesThatOthersDependOn) {
  Space space = {{"before", shared(IntDistribution{.low = 0, .high = 1})},
                 {"depth", shared(IntDistribution{.low = 0, .high = 1})},
                 {"behind", shared(IntDistribution{.low = 0, .high = 2})}};
  for (int i = 0; i < 24; ++i)
    space.push_back({"c" + std::to_string(i),
                     shared(IntDistribution{.low = 0, .high = 1}),
                     "depth",
                     {i < 4 ? 0.0 : 1.0}});
  const auto sampler = make_sampler("grid", 9, &space);
  const History history({Direction::Minimize});
  std::set<std::uint64_t> keys;
  int num_shallow = 0;
  const auto walk = [&](int from, int to) {
    for (int number = from; number < to; ++number) {
      const Assignment point = sampler->propose(history, {.number = number});
      keys.insert(point_key(point));
      num_shallow += find_parameter(point, "depth")->value == 0;
    }
  };
  walk(0, 40);
  EXPECT_EQ(num_shallow, 20);
  walk(40, 300);
  EXPECT_EQ(num_shallow, 2 * 3 * 16);  // that is all of them
  EXPECT_EQ(keys.size(), 300u);
}

TEST(GridPoints, NumbersPointsWithTheLastParameterFastest) {
  const GridPoints points(conditional(), 0);
  EXPECT_EQ(points.size(), 11u);
  const auto text = [&](std::uint64_t index) {
    std::string result;
    for (const Parameter& each : points.point(index))
      result += each.name + "=" + std::to_string(static_cast<int>(each.value)) + " ";
    return result;
  };
  EXPECT_EQ(text(0), "type=0 width=1 ");
  EXPECT_EQ(text(3), "type=0 width=4 ");
  EXPECT_EQ(text(4), "type=1 block=1 fraction=5 ");
  EXPECT_EQ(text(5), "type=1 block=1 fraction=6 ");
  EXPECT_EQ(text(9), "type=1 block=2 fraction=7 ");
  EXPECT_EQ(text(10), "type=2 ");
}

TEST(GridPoints, SpreadsNumbersWithoutAStep) {
  const Space space = {{"lr", shared(FloatDistribution{.low = 1e-4, .high = 1, .log = true})}};
  const GridPoints points(space, 5);
  const std::vector<double> values = points.values(0);
  const std::vector<double> expected = {1e-4, 1e-3, 1e-2, 1e-1, 1};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(values[i] / expected[i], 1, 1e-12);
}

TEST(GridSampler, SaysWhatItNeeds) {
  const auto message = [](const char* sampler, const Space* space) -> std::string {
    try {
      make_sampler(sampler, 0, space);
    } catch (const UserError& error) {
      return error.message() + " / " + error.hint();
    }
    return "no error";
  };
  const Space continuous = {{"x", shared(FloatDistribution{.low = 0, .high = 1})}};
  EXPECT_EQ(message("grid", nullptr), "sampler \"grid\": the study declares no space / ");
  EXPECT_EQ(message("grid", &continuous),
            "sampler \"grid\": parameter \"x\" has no step / "
            "points=N gives such parameters N values each");
  EXPECT_EQ(message("grid:points=10", &continuous), "no error");
  Space endless;
  for (int i = 0; i < 40; ++i)
    endless.push_back({std::to_string(i), shared(IntDistribution{.low = 1, .high = 5})});
  EXPECT_THAT(message("grid", &endless), testing::HasSubstr("more than 4.6e18 points"));
}

// Printed by CPython 3.11.
TEST(PythonSet, ListsInPythonsOrder) {
  PythonSet set;
  for (const int key : {40, 8, 16, 3, 9, 1000, 11, 24}) set.add(static_cast<std::uint64_t>(key));
  EXPECT_EQ(set.list(), (std::vector<std::uint64_t>{3, 40, 8, 9, 1000, 11, 16, 24}));
  PythonSet visited;
  for (const int key : {33, 24, 6,  20, 34, 37, 0,  30, 9,  7,  38, 12, 1,  16, 2,  18, 3,  21,
                        28, 5,  39, 10, 23, 19, 17, 29, 32, 11, 4,  31, 22, 27, 26, 35, 14, 36})
    visited.add(static_cast<std::uint64_t>(key));
  EXPECT_EQ(PythonSet::range(40).minus(visited).list(),
            (std::vector<std::uint64_t>{8, 25, 13, 15}));
}

}  // namespace
}  // namespace lathe::study
