#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lathe/core/error.h"
#include "lathe/study/storages/memory_storage.h"
#include "lathe/study/study.h"
#include "lathe/study/testing/small_study.h"

namespace lathe::study {
namespace {

TEST(Optimize, PromotesPausedTrialsUntilNoneDeservesIt) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random",
                               .pruner = "successive-halving:min-resource=1,factor=3,pause=true",
                               .seed = 1});
  // Nine trials of nine steps that differ from the start: three get to step 3, one to the end.
  std::vector<int> evaluated(9, 0);
  const auto objective = [&](Trial& trial) -> Outcome {
    const int done = static_cast<int>(trial.record().intermediate_values.size());
    for (int step = done + 1; step <= 9; ++step) {
      ++evaluated[static_cast<std::size_t>(trial.number())];
      trial.report(step, trial.number());
      const Verdict verdict = trial.verdict();
      if (verdict == Verdict::Pause) return {.state = TrialState::Waiting};
      if (verdict == Verdict::Prune) return {.state = TrialState::Pruned};
    }
    return complete(trial.number());
  };
  study.optimize(objective, {.trials = 9});

  EXPECT_EQ(study.history().trials().size(), 9);
  EXPECT_EQ(evaluated, std::vector<int>({9, 3, 3, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(study.history().trials()[8].state, TrialState::Waiting);
}

TEST(Optimize, GivesAnInterruptedTrialBackToTheQueue) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1, .space = small_space()});
  const auto interrupted = [](Trial&) -> Outcome { throw Interrupted(); };
  EXPECT_THROW(study.optimize(interrupted, {.trials = 3}), Interrupted);
  EXPECT_EQ(study.history().trials()[0].state, TrialState::Waiting);
  EXPECT_EQ(study.ask()->number(), 0);
}

TEST(Optimize, FailsATrialWhoseObjectiveFailsAndGoesOn) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  const auto objective = [](Trial& trial) {
    if (trial.number() == 1) fail("out of memory");
    if (trial.number() == 2) return Outcome{.values = {1, 2}};
    return complete(trial.number());
  };
  std::vector<int> seen;
  study.optimize(objective, {.trials = 4},
                 {[&](Study&, const TrialRecord& trial) { seen.push_back(trial.number); }});
  EXPECT_EQ(seen, std::vector<int>({0, 1, 2, 3}));
  EXPECT_EQ(study.history().trials()[1].user_attributes.at("fail_reason"), "\"out of memory\"");
  EXPECT_EQ(study.history().trials()[2].state, TrialState::Fail);
  EXPECT_EQ(study.history().trials()[3].state, TrialState::Complete);
}

TEST(Optimize, StopsAtATargetAfterStagnationOrWhenACallbackSaysSo) {
  const auto run = [](const StopRule& rule, const std::vector<Study::Callback>& callbacks = {}) {
    Study study = Study::create(std::make_shared<MemoryStorage>(), "s", {Direction::Maximize},
                                {.sampler = "random", .seed = 1});
    // 0, 1, 2, 3, 3, 3, ...
    study.optimize([](Trial& trial) { return complete(std::min(trial.number(), 3)); }, rule,
                   callbacks);
    return study.history().finished().size();
  };
  EXPECT_EQ(run({.trials = 10}), 10);
  EXPECT_EQ(run({.trials = 10, .target = 2}), 3);
  EXPECT_EQ(run({.trials = 100, .patience = 5}), 9);
  EXPECT_EQ(run({.time = std::chrono::seconds(0)}), 0);
  EXPECT_EQ(run({.should_stop = [] { return true; }}), 0);
  EXPECT_EQ(run({.trials = 10}, {[](Study& study, const TrialRecord& trial) {
                  if (trial.number == 4) study.stop();
                }}),
            5);
}

TEST(Optimize, CountsTheTrialsOfTheWholeStudy) {
  auto storage = std::make_shared<MemoryStorage>();
  Study first = Study::create(storage, "s", kMinimize, {.sampler = "random", .seed = 1});
  first.optimize([](Trial&) { return complete(1); }, {.trials = 4});
  Study second = Study::open(storage, "s");
  int count = 0;
  second.optimize([&](Trial&) { return complete(++count); }, {.trials = 6});
  EXPECT_EQ(count, 2);
}

TEST(Optimize, RepeatsEachFailedTrialOnceWithItsParameters) {
  auto storage = std::make_shared<MemoryStorage>();
  Study study = Study::create(storage, "s", kMinimize, {.sampler = "random", .seed = 1});
  std::vector<double> tried;
  const auto fails_first = [&](Trial& trial) -> Outcome {
    tried.push_back(trial.suggest_float("x", 0, 1));
    if (trial.number() == 0) fail("out of memory");
    return complete(tried.back());
  };
  study.optimize(fails_first, {.trials = 2});
  EXPECT_EQ(study.retry_failed(), 1);
  EXPECT_EQ(study.retry_failed(), 0);
  study.optimize(fails_first, {.trials = 3});
  ASSERT_EQ(tried.size(), 3u);
  EXPECT_EQ(tried[2], tried[0]);
  EXPECT_NE(tried[1], tried[0]);
  const TrialRecord& again = study.history().trials()[2];
  EXPECT_EQ(again.state, TrialState::Complete);
  EXPECT_EQ(again.system_attributes.at("failed_trial"), "0");
  EXPECT_EQ(study.retry_failed(), 0);
}

}  // namespace
}  // namespace lathe::study
