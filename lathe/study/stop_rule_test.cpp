#include "lathe/study/stop_rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

TEST(Progress, KnowsTheBestWhateverTheOrderOfResults) {
  History history({Direction::Maximize});
  Progress progress;
  history.change([](std::vector<TrialRecord>& trials) {
    trials = {{.number = 0},
              {.number = 1, .state = TrialState::Complete, .values = {3}},
              {.number = 2, .state = TrialState::Complete, .values = {2}},
              {.number = 3, .state = TrialState::Fail}};
  });
  progress.update(history);
  EXPECT_EQ(progress.best(), 1);
  EXPECT_EQ(progress.num_since_best(), 2);
  history.change([](std::vector<TrialRecord>& trials) {
    trials[0].state = TrialState::Complete;
    trials[0].values = {3};
  });
  progress.update(history);
  EXPECT_EQ(progress.best(), 0) << "the first of equals";
  EXPECT_EQ(progress.num_since_best(), 3) << "an equal is no progress";
  EXPECT_EQ(progress.num_finished(), 4);
}

TEST(Progress, LooksAtFeasibleCompleteNumbersOnly) {
  History history({Direction::Minimize});
  add_finished(history, {}, {1}, {{"constraints", "[1]"}});
  add_finished(history, {}, {NAN});
  add_finished(history, {}, {2}, {}, TrialState::Pruned);
  Progress progress;
  progress.update(history);
  EXPECT_EQ(progress.best(), std::nullopt);
  EXPECT_FALSE(progress.is_over({.target = 5, .patience = 1}, history));
  add_finished(history, {}, {5});
  progress.update(history);
  EXPECT_EQ(progress.best(), 3);
  EXPECT_TRUE(progress.is_over({.target = 5}, history));
  EXPECT_FALSE(progress.is_over({.trials = 5, .target = 4, .patience = 1}, history));
  EXPECT_TRUE(progress.is_over({.trials = 4}, history));
}

}  // namespace
}  // namespace lathe::study
