#include "lathe/study/work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lathe/core/error.h"
#include "lathe/study/storages/memory_storage.h"

namespace lathe::study {
namespace {

using std::chrono::milliseconds;

const std::vector<Direction> kMinimize = {Direction::Minimize};

std::vector<Ending> endings_of(Study& study, const Evaluate& evaluate, const StopRule& rule) {
  std::vector<Ending> endings;
  work(study, evaluate, rule, [&](const WorkedTrial& each) { endings.push_back(each.ending); });
  return endings;
}

TEST(Work, TellsWhatATrialWasAndHowFarTheStudyIs) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  const std::vector<double> values = {3, 1, 2};
  std::vector<std::string> lines;
  work(
      study,
      [&](Trial& trial, const ShouldStop& should_stop) -> Outcome {
        EXPECT_FALSE(should_stop());
        return {.values = {values.at(static_cast<std::size_t>(trial.number()))}};
      },
      {.trials = 3},
      [&](const WorkedTrial& each) {
        EXPECT_EQ(each.ending, Ending::Told);
        lines.push_back(fmt::format("{} of {}: {}, best {}", each.trial.number, each.num_finished,
                                    each.trial.values[0], each.best->number));
      });
  EXPECT_EQ(lines, (std::vector<std::string>{"0 of 1: 3, best 0", "1 of 2: 1, best 1",
                                             "2 of 3: 2, best 1"}));
}

TEST(Work, FailsATrialWithAUserErrorAndGoesOn) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  const auto evaluate = [](Trial& trial, const ShouldStop&) -> Outcome {
    if (trial.number() == 0) fail("no such layer");
    return {.values = {1}};
  };
  EXPECT_EQ(endings_of(study, evaluate, {.trials = 2}), (std::vector{Ending::Told, Ending::Told}));
  EXPECT_EQ(study.history().trials()[0].state, TrialState::Fail);
  EXPECT_EQ(study.history().trials()[0].user_attributes.at("fail_reason"), "\"no such layer\"");
}

TEST(Work, CountsFailedTrialsOnlyWhereAskedTo) {
  for (const bool counts : {true, false}) {
    Study study = Study::create(std::make_shared<MemoryStorage>(), "s", {Direction::Minimize},
                                {.sampler = "random", .seed = 1});
    int evaluated = 0;
    work(study,
         [&](Trial& trial, const ShouldStop&) -> Outcome {
           ++evaluated;
           if (trial.number() % 2 == 0) fail("even");
           return {.values = {1}};
         },
         {.trials = 3, .counts_failed = counts});
    EXPECT_EQ(evaluated, counts ? 3 : 6);
  }
}

TEST(Work, HandsTheTrialBackWhenItIsInterrupted) {
  Study study = Study::create(std::make_shared<MemoryStorage>(), "s", kMinimize,
                              {.sampler = "random", .seed = 1});
  bool is_interrupted = false;
  std::vector<Ending> endings;
  const auto evaluate = [&](Trial&, const ShouldStop& should_stop) -> Outcome {
    is_interrupted = true;  // Ctrl-C comes while the trial is evaluated
    if (should_stop()) throw Interrupted();
    return {.values = {1}};
  };
  EXPECT_THROW(work(study, evaluate, {.should_stop = [&] { return is_interrupted; }},
                    [&](const WorkedTrial& each) { endings.push_back(each.ending); }),
               Interrupted);
  EXPECT_EQ(endings, std::vector{Ending::HandedBack});
  EXPECT_EQ(study.history().trials()[0].state, TrialState::Waiting);
  EXPECT_TRUE(endings_of(study, evaluate, {.should_stop = [] { return true; }}).empty())
      << "nothing is started when it is over before it begins";
}

// A study whose storage has a clock that only the test moves; what the thread of the heartbeats
// does is seen by its asking for the time.
class WithLease : public testing::Test {
 protected:
  static constexpr milliseconds kLease{30};

  Time tell_time() {
    if (std::this_thread::get_id() != worker_) ++num_beats_;
    return Time(milliseconds(time_ms_));
  }
  void wait_for_beat() {
    for (const int before = num_beats_; num_beats_ < before + 2;)
      std::this_thread::sleep_for(milliseconds(1));
  }
  Study open() {
    return Study::create(storage_, "s", kMinimize,
                         {.sampler = "random", .seed = 1, .lease = kLease});
  }

  std::thread::id worker_ = std::this_thread::get_id();
  std::atomic<int> num_beats_{0};
  std::atomic<int> time_ms_{1};
  std::shared_ptr<Storage> storage_ =
      std::make_shared<MemoryStorage>([this] { return tell_time(); });
};

TEST_F(WithLease, SendsHeartbeatsWhileATrialIsEvaluated) {
  Study study = open();
  Study other = open();
  int second = -1;
  work(study,
       [&](Trial& trial, const ShouldStop&) -> Outcome {
         if (trial.number() > 0) return {.values = {0}};
         time_ms_ += 1000;
         wait_for_beat();
         std::optional<Trial> theirs = other.ask();
         second = theirs->number();
         EXPECT_TRUE(other.tell(*theirs, {.values = {2}}));
         return {.values = {1}};
       },
       {.trials = 2});
  EXPECT_EQ(second, 1) << "after many leases the trial in work is still its worker's";
  EXPECT_EQ(study.history().trials()[0].values, std::vector<double>{1});
}

TEST_F(WithLease, NoticesThatATrialWasLostAndLeavesItAlone) {
  Study study = open();
  Study other = open();
  std::optional<Trial> theirs;
  const auto evaluate = [&](Trial& trial, const ShouldStop& should_stop) -> Outcome {
    if (trial.number() > 0) return {.values = {0}};
    // As if this process had slept: time passes and another asks before a heartbeat is sent.
    while (!theirs || theirs->number() != 0) {
      if (theirs) other.release(*theirs);
      time_ms_ += 1000;
      theirs = other.ask();
    }
    while (!should_stop()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(other.tell(*theirs, {.values = {2}}));
    throw Interrupted();
  };
  const std::vector<Ending> endings = endings_of(study, evaluate, {.trials = 1});
  EXPECT_EQ(endings, std::vector{Ending::Lost});
  EXPECT_EQ(study.history().trials()[0].values, std::vector<double>{2});
}

TEST_F(WithLease, TakesUpWhatADeadWorkerLeft) {
  Study dead = open();
  ASSERT_TRUE(dead.ask());
  time_ms_ += 1000;
  Study study = open();
  std::vector<int> numbers;
  work(
      study, [](Trial&, const ShouldStop&) -> Outcome { return {.values = {1}}; }, {.trials = 2},
      [&](const WorkedTrial& each) { numbers.push_back(each.trial.number); });
  EXPECT_EQ(numbers, (std::vector{0, 1}));
}

TEST_F(WithLease, RefusesTheResultOfWhoeverLostTheTrial) {
  Study study = open();
  Study other = open();
  const auto evaluate = [&](Trial& trial, const ShouldStop&) -> Outcome {
    if (trial.number() > 0) return {.values = {0}};
    std::optional<Trial> theirs;
    while (!theirs || theirs->number() != 0) {
      if (theirs) other.release(*theirs);
      time_ms_ += 1000;
      theirs = other.ask();
    }
    EXPECT_TRUE(other.tell(*theirs, {.values = {2}}));
    return {.values = {1}};  // without asking whether to stop
  };
  EXPECT_EQ(endings_of(study, evaluate, {.trials = 1}), std::vector{Ending::Lost});
  EXPECT_EQ(study.history().trials()[0].values, std::vector<double>{2});
}

}  // namespace
}  // namespace lathe::study
