#include "lathe/study/trial_record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/testing/error_text.h"
#include "lathe/study/history.h"

namespace lathe::study {
namespace {

TEST(TrialRecord, NamesStatesAsOptunaDoes) {
  for (const auto state : {TrialState::Running, TrialState::Complete, TrialState::Pruned,
                           TrialState::Fail, TrialState::Waiting})
    EXPECT_EQ(parse_trial_state(name(state)), state);
  EXPECT_EQ(name(TrialState::Fail), "FAIL");
  EXPECT_EQ(parse_trial_state("FAILED"), std::nullopt);
}

TEST(TrialRecord, AppliesAChange) {
  const auto unit = std::make_shared<const Distribution>(FloatDistribution{});
  TrialRecord trial = {.parameters = {{"x", unit, 0.5}},
                       .intermediate_values = {{1, 3.0}},
                       .user_attributes = {{"a", "1"}, {"b", "2"}}};
  const Time end{std::chrono::seconds(9)};
  apply({.parameters = {{"y", unit, 0.25}, {"x", unit, 0.75}},
         .intermediate_values = {{1, 4.0}, {2, 5.0}},
         .user_attributes = {{"b", "3"}},
         .state = TrialState::Complete,
         .values = {7}},
        trial, end);
  ASSERT_EQ(trial.parameters.size(), 2);
  EXPECT_EQ(trial.find("x")->value, 0.75);
  EXPECT_EQ(trial.find("y")->value, 0.25);
  EXPECT_EQ(trial.find("z"), nullptr);
  EXPECT_EQ(trial.intermediate_values, (std::map<int, double>{{1, 3.0}, {2, 5.0}}));
  EXPECT_EQ(trial.user_attributes, (Attributes{{"a", "1"}, {"b", "3"}}));
  EXPECT_EQ(trial.values, std::vector<double>{7});
  EXPECT_EQ(trial.complete, end);
}

TEST(TrialRecord, AddsUpWhatConstraintsAreAboveZero) {
  EXPECT_EQ(violation({}), 0);
  EXPECT_EQ(violation({.system_attributes = {{"constraints", "[-1, 0, 0.5, 2]"}}}), 2.5);
  EXPECT_EQ(violation({.system_attributes = {{"constraints", "[NaN]"}}}), INFINITY);
  EXPECT_TRUE(is_feasible({.system_attributes = {{"constraints", "null"}}}));
  EXPECT_EQ(error_text([] {
              violation({.number = 3, .system_attributes = {{"constraints", "\"a\""}}});
            }),
            "trial 3: attribute \"constraints\": expected a list of numbers, not \"a\"");
}

TEST(TrialRecord, JoinsTheReportsOfSeveralObjectives) {
  const TrialRecord trial = {.intermediate_values = {{4, 0.5}},
                             .system_attributes = {{report_key(4), "[2.0, -Infinity]"}}};
  EXPECT_EQ(report_at(trial, 4), (std::vector<double>{0.5, 2, -INFINITY}));
  EXPECT_EQ(report_at(trial, 5), std::vector<double>());
}

TEST(History, NoticesFinishedTrialsOnceAsItLearnsOfThem) {
  const auto numbers = [](const History& history) {
    return std::vector<int>(history.finished().begin(), history.finished().end());
  };
  History history({Direction::Minimize});
  history.change([](std::vector<TrialRecord>& trials) {
    trials = {{.number = 0},
              {.number = 1, .state = TrialState::Complete},
              {.number = 2, .state = TrialState::Waiting}};
  });
  EXPECT_EQ(numbers(history), std::vector<int>({1}));
  history.change([](std::vector<TrialRecord>& trials) {
    trials[2].state = TrialState::Fail;
    trials.push_back({.number = 3, .state = TrialState::Pruned});
  });
  EXPECT_EQ(numbers(history), std::vector<int>({1, 2, 3}));
  history.change([](std::vector<TrialRecord>& trials) { trials[0].state = TrialState::Complete; });
  EXPECT_EQ(numbers(history), std::vector<int>({1, 2, 3, 0}));
}

TEST(History, RefusesTrialsOutOfOrder) {
  History history({Direction::Minimize});
  EXPECT_EQ(error_text([&] {
              history.change([](std::vector<TrialRecord>& trials) { trials = {{.number = 1}}; });
            }),
            "internal error");
}

}  // namespace
}  // namespace lathe::study
