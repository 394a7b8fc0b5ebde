// Every pruner against the decisions that Optuna 3.1 took on the same reports, and what Optuna does
// not do: several objectives, and pausing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/pruners/pruner.h"

namespace lathe::study {
namespace {

// Runs trials one after the other, each until the pruner stops it, and says where each ended: at a
// step, or at the end (a dot). P marks a pause.
std::string endings(Pruner& pruner, History& history, int num_trials, const std::vector<int>& steps,
                    const std::function<std::vector<double>(int number, int step)>& report) {
  std::string text;
  for (int number = 0; number < num_trials; ++number) {
    TrialRecord trial;
    trial.number = number;
    history.change([&](auto& trials) { trials.push_back(trial); });
    std::string ending = ".";
    Verdict verdict = Verdict::Continue;
    for (const int step : steps) {
      const std::vector<double> values = report(number, step);
      trial.intermediate_values[step] = values[0];
      if (values.size() > 1)
        trial.system_attributes[report_key(step)] =
            to_json_text(std::vector<double>(values.begin() + 1, values.end()));
      Attributes attributes;
      verdict = pruner.judge(history, trial, attributes);
      for (const auto& [key, value] : attributes) trial.system_attributes[key] = value;
      if (verdict == Verdict::Continue) continue;
      ending = fmt::format("{}{}", verdict == Verdict::Pause ? "P" : "", step);
      break;
    }
    trial.state = verdict == Verdict::Continue ? TrialState::Complete
                  : verdict == Verdict::Prune  ? TrialState::Pruned
                                               : TrialState::Waiting;
    if (verdict == Verdict::Pause) trial.system_attributes["lathe:paused"] = "true";
    history.change([&](auto& trials) { trials.back() = trial; });
    text += (number > 0 ? " " : "") + ending;
  }
  return text;
}

struct Recorded {
  const char* pruner;
  Direction direction;
  int stride;
  const char* endings;
};

// 24 trials report (37 n + 11 s + 5 n n s mod 101) / 8 at steps 0, stride, ..., 12 stride, but
// NaN at every fifth step 4 of every seventh trial 3.
class OptunaPruners : public ::testing::TestWithParam<Recorded> {};

TEST_P(OptunaPruners, StopTheSameTrialsAtTheSameSteps) {
  const Recorded& recorded = GetParam();
  const auto pruner = make_pruner(recorded.pruner);
  History history({recorded.direction});
  std::vector<int> steps;
  for (int i = 0; i < 13; ++i) steps.push_back(i * recorded.stride);
  EXPECT_EQ(endings(*pruner, history, 24, steps,
                    [](int n, int s) -> std::vector<double> {
                      if (n % 7 == 3 && s % 5 == 4) return {NAN};
                      return {((n * 37 + s * 11 + n * n * s * 5) % 101) / 8.0};
                    }),
            recorded.endings)
      << recorded.pruner;
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(Recorded, OptunaPruners, ::testing::ValuesIn(std::vector<Recorded>{
      {"median", Direction::Minimize, 1,
       ". . . . . 0 . 0 0 0 0 . 0 0 . 0 0 0 0 0 0 0 . 0"},
      {"median", Direction::Minimize, 3,
       ". . . . . 0 24 0 0 . 0 . 0 0 . 0 0 0 0 0 0 0 . 0"},
      {"median", Direction::Maximize, 1,
       ". . . . . . 0 3 . 0 . 0 0 7 0 0 . 0 0 . 0 0 0 0"},
      {"median", Direction::Maximize, 3,
       ". . . . . . 0 3 . 0 . 0 0 . 0 0 . 0 0 . 0 0 0 0"},
      {"median:startup=2,warmup=3,interval=4", Direction::Minimize, 1,
       ". . . . . . . . . . . . . . . 11 . . . 3 . 3 . ."},
      {"median:startup=2,warmup=3,interval=4", Direction::Minimize, 3,
       ". . 3 . 36 3 36 . 3 . 3 . . . . . . . . 3 . 3 . 3"},
      {"median:startup=2,warmup=3,interval=4", Direction::Maximize, 1,
       ". . . . 3 . . 3 . 3 . 3 . . . . . 3 . . 3 . 3 ."},
      {"median:startup=2,warmup=3,interval=4", Direction::Maximize, 3,
       ". . 9 9 3 . 9 3 9 3 9 3 3 3 3 3 9 3 3 . 3 3 3 3"},
      {"percentile:percentile=25,startup=3", Direction::Minimize, 1,
       ". . . 1 0 0 0 0 0 0 0 . 0 0 0 0 0 0 0 0 0 0 0 0"},
      {"percentile:percentile=25,startup=3", Direction::Minimize, 3,
       ". . . . 0 0 0 0 0 0 0 . 0 0 0 0 0 0 0 0 0 0 0 0"},
      {"percentile:percentile=25,startup=3", Direction::Maximize, 1,
       ". . . 0 0 . 0 0 9 0 0 0 0 3 0 0 . 0 0 . 0 0 0 0"},
      {"percentile:percentile=25,startup=3", Direction::Maximize, 3,
       ". . . 0 0 . 0 0 9 0 0 0 0 3 0 0 9 0 0 . 0 0 0 0"},
      {"percentile:percentile=70,startup=0,min-trials=4", Direction::Minimize, 1,
       ". . . . 0 0 . 0 0 . 0 . 0 0 . 0 0 . 0 0 0 0 . 0"},
      {"percentile:percentile=70,startup=0,min-trials=4", Direction::Minimize, 3,
       ". . . . 0 0 . 0 0 . 0 . 0 0 . 0 0 . 0 0 0 0 . 0"},
      {"percentile:percentile=70,startup=0,min-trials=4", Direction::Maximize, 1,
       ". . . . 3 . . 3 . 3 . 0 . . 0 . . 0 . . 0 . 0 ."},
      {"percentile:percentile=70,startup=0,min-trials=4", Direction::Maximize, 3,
       ". . . . 3 . . 3 . 3 . 0 3 . 0 3 . 0 . . 0 . 0 0"},
      {"successive-halving", Direction::Minimize, 1,
       ". . 4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 4 1"},
      {"successive-halving", Direction::Minimize, 3,
       ". . 6 3 6 3 3 6 3 3 3 3 6 3 3 3 3 3 6 3 6 3 3 3"},
      {"successive-halving", Direction::Maximize, 1,
       ". . 1 4 1 1 1 1 1 1 4 1 . 1 . . 1 1 4 . 1 1 1 4"},
      {"successive-halving", Direction::Maximize, 3,
       ". . 3 3 3 18 6 3 3 3 3 3 3 3 3 3 3 3 3 6 3 3 3 3"},
      {"successive-halving:min-resource=2,factor=2", Direction::Minimize, 1,
       ". 2 2 4 2 2 2 2 2 2 2 . 2 2 2 2 4 4 2 2 4 2 . 4"},
      {"successive-halving:min-resource=2,factor=2", Direction::Minimize, 3,
       ". 3 3 3 6 3 3 6 3 . 3 9 6 33 9 6 9 6 9 3 6 3 . 18"},
      {"successive-halving:min-resource=2,factor=2", Direction::Maximize, 1,
       ". 4 2 2 2 4 8 8 2 8 4 2 4 8 4 8 2 2 4 . 2 4 2 2"},
      {"successive-halving:min-resource=2,factor=2", Direction::Maximize, 3,
       ". 6 3 6 3 9 6 3 9 3 6 3 3 3 3 3 3 3 3 9 3 6 3 3"},
      {"successive-halving:min-resource=1,factor=3,rate=1,bootstrap=2", Direction::Minimize, 1,
       "3 3 3 3 9 3 3 9 3 3 3 9 9 . 3 9 9 3 9 3 . 3 3 3"},
      {"successive-halving:min-resource=1,factor=3,rate=1,bootstrap=2", Direction::Minimize, 3,
       "3 3 3 3 9 3 3 9 3 3 3 9 9 27 3 9 9 3 9 3 27 3 3 3"},
      {"successive-halving:min-resource=1,factor=3,rate=1,bootstrap=2", Direction::Maximize, 1,
       "3 3 3 3 3 9 9 3 3 3 9 3 3 3 3 3 3 3 3 9 3 3 3 3"},
      {"successive-halving:min-resource=1,factor=3,rate=1,bootstrap=2", Direction::Maximize, 3,
       "3 3 3 3 3 9 9 3 3 3 9 3 3 3 3 3 3 3 3 9 3 3 3 3"},
      {"hyperband:study=recorded", Direction::Minimize, 1,
       ". . . 1 1 1 3 . 3 1 1 3 1 1 1 3 . 1 9 3 9 3 3 1"},
      {"hyperband:study=recorded", Direction::Minimize, 3,
       ". . . 9 27 3 3 . 3 3 3 3 9 27 . 9 3 3 9 9 9 3 3 3"},
      {"hyperband:study=recorded", Direction::Maximize, 1,
       ". . 1 3 1 1 1 . . 1 9 3 3 1 3 3 . 3 3 . 1 3 1 3"},
      {"hyperband:study=recorded", Direction::Maximize, 3,
       ". . . 9 3 27 9 3 . 3 9 3 3 9 . . 3 3 3 . 3 3 3 3"},
      {"hyperband:study=recorded,min-resource=1,max-resource=9,factor=2", Direction::Minimize, 1,
       ". . 4 . 1 2 2 2 2 . 2 8 . 4 1 2 . 1 2 4 8 . 8 4"},
      {"hyperband:study=recorded,min-resource=1,max-resource=9,factor=2", Direction::Minimize, 3,
       ". . 6 9 6 3 3 6 3 . 3 6 . 6 3 6 9 6 . 6 18 18 9 18"},
      {"hyperband:study=recorded,min-resource=1,max-resource=9,factor=2", Direction::Maximize, 1,
       ". . 1 . 1 1 1 1 4 . 4 4 8 4 8 8 8 2 4 . . 4 . 2"},
      {"hyperband:study=recorded,min-resource=1,max-resource=9,factor=2", Direction::Maximize, 3,
       ". . 3 9 3 18 6 3 6 . 6 . . 6 3 3 . 3 3 9 9 6 18 3"},
      {"patience:patience=2", Direction::Minimize, 1,
       "3 3 4 3 7 4 4 4 7 3 3 3 6 12 3 6 6 5 6 . 6 . 3 5"},
      {"patience:patience=2", Direction::Minimize, 3,
       "9 . 36 9 12 9 9 12 24 15 15 9 12 18 15 12 12 9 12 . 12 18 9 18"},
      {"patience:patience=2", Direction::Maximize, 1,
       "12 6 3 10 3 . 5 . 3 8 8 12 5 3 4 5 3 4 5 3 3 3 . 4"},
      {"patience:patience=2", Direction::Maximize, 3,
       "18 12 9 12 24 21 . 21 9 . 12 18 24 9 21 15 36 15 18 9 24 9 21 9"},
      {"patience:patience=1,min-delta=0.5,pruner=median/startup=2", Direction::Minimize, 1,
       ". . . . . . . . . . 2 . . . . . . . 2 . . . . ."},
      {"patience:patience=1,min-delta=0.5,pruner=median/startup=2", Direction::Minimize, 3,
       ". . . . . 9 24 24 . . . . . . . 24 24 24 . . . . . ."},
      {"patience:patience=1,min-delta=0.5,pruner=median/startup=2", Direction::Maximize, 1,
       ". . . . 3 . . . . . . . . . . . . . . . 2 . . ."},
      {"patience:patience=1,min-delta=0.5,pruner=median/startup=2", Direction::Maximize, 3,
       ". . 9 9 . . . . . . . . . . . . . . 6 . . . . 6"},
      {"threshold:lower=1,upper=11.5", Direction::Minimize, 1,
       "0 4 1 4 4 9 2 12 0 6 4 0 7 9 1 2 4 2 3 0 3 11 0 2"},
      {"threshold:lower=1,upper=11.5", Direction::Minimize, 3,
       "0 36 27 9 15 9 30 12 0 6 6 0 15 9 6 6 18 9 3 0 3 12 0 12"},
      {"threshold:lower=1,upper=11.5", Direction::Maximize, 1,
       "0 4 1 4 4 9 2 12 0 6 4 0 7 9 1 2 4 2 3 0 3 11 0 2"},
      {"threshold:lower=1,upper=11.5", Direction::Maximize, 3,
       "0 36 27 9 15 9 30 12 0 6 6 0 15 9 6 6 18 9 3 0 3 12 0 12"},
      {"threshold:upper=10,warmup=2,interval=3", Direction::Minimize, 1,
       "8 . . 5 5 . 2 8 11 5 5 8 2 11 . 2 . 11 2 2 5 . 11 5"},
      {"threshold:upper=10,warmup=2,interval=3", Direction::Minimize, 3,
       "9 3 30 9 6 3 3 12 18 30 3 9 6 15 12 6 9 9 9 3 15 12 12 12"},
      {"threshold:upper=10,warmup=2,interval=3", Direction::Maximize, 1,
       "8 . . 5 5 . 2 8 11 5 5 8 2 11 . 2 . 11 2 2 5 . 11 5"},
      {"threshold:upper=10,warmup=2,interval=3", Direction::Maximize, 3,
       "9 3 30 9 6 3 3 12 18 30 3 9 6 15 12 6 9 9 9 3 15 12 12 12"},
}));
// clang-format on

// Trial n reports (n, 1 / (1 + n)) from the front, or the same shifted up by `worse`.
std::vector<double> on_front(int n, double worse) {
  return {n + worse, 1.0 / (1 + n) + worse};
}

TEST(SeveralObjectives, MedianStopsWhatLiesInALaterFrontThanHalfOfTheOthers) {
  const auto pruner = make_pruner("median:startup=4");
  History history({Direction::Minimize, Direction::Minimize});
  EXPECT_EQ(
      endings(*pruner, history, 7, {0, 1}, [](int n, int) { return on_front(n, n == 5 ? 9 : 0); }),
      ". . . . . 0 .");
}

TEST(SeveralObjectives, MaximizingOneTurnsTheFrontAround) {
  const auto pruner = make_pruner("median:startup=2");
  History history({Direction::Minimize, Direction::Maximize});
  // The third is worse than both in the second objective alone.
  const std::vector<std::vector<double>> reports = {{1, 5}, {2, 6}, {2, 4}, {1, 7}};
  EXPECT_EQ(endings(*pruner, history, 4, {0}, [&](int n, int) { return reports[n]; }), ". . 0 .");
}

TEST(SeveralObjectives, HalvingKeepsTheFrontAndDropsTheDominated) {
  const auto pruner = make_pruner("successive-halving:min-resource=1,factor=2");
  History history({Direction::Minimize, Direction::Minimize});
  const std::vector<std::vector<double>> reports = {{1, 9}, {2, 10}, {9, 1}, {10, 2}, {5, 5}};
  EXPECT_EQ(endings(*pruner, history, 5, {1}, [&](int n, int) { return reports[n]; }), ". 1 . 1 1");
  EXPECT_EQ(history.trials()[2].system_attributes.at("completed_rung_0"), "[9.0, 1.0]");
}

TEST(SeveralObjectives, PatienceWaitsWhileAnyObjectiveImproves) {
  const auto pruner = make_pruner("patience:patience=1");
  History history({Direction::Minimize, Direction::Minimize});
  EXPECT_EQ(endings(*pruner, history, 2, {0, 1, 2, 3, 4},
                    [](int n, int s) -> std::vector<double> {
                      return {1.0 + s, n == 0 ? 5.0 - s : 5.0 + s};
                    }),
            ". 2");
}

TEST(SeveralObjectives, ThresholdsAreGivenForEach) {
  const auto pruner = make_pruner("threshold:upper=/10,lower=0");
  History history({Direction::Minimize, Direction::Minimize});
  const std::vector<std::vector<double>> reports = {{99, 10}, {99, 11}, {-1, 3}};
  EXPECT_EQ(endings(*pruner, history, 3, {0}, [&](int n, int) { return reports[n]; }), ". 0 0");
}

TEST(SeveralObjectives, AnIncompleteReportIsNotJudged) {
  const auto pruner = make_pruner("successive-halving:min-resource=1,factor=2");
  History history({Direction::Minimize, Direction::Minimize});
  EXPECT_EQ(endings(*pruner, history, 3, {1},
                    [](int n, int) -> std::vector<double> { return {static_cast<double>(n)}; }),
            ". . .");
}

TEST(Pausing, TrialsWaitUntilTheyAreAmongTheBestOfTheirRung) {
  const auto pruner = make_pruner("successive-halving:min-resource=1,factor=3,pause=true");
  History history({Direction::Minimize});
  const auto report = [](int n, int) -> std::vector<double> {
    return {std::vector<double>{5, 4, 6, 1, 9, 8}[n]};
  };
  EXPECT_EQ(pruner->promote(history), std::nullopt);
  EXPECT_EQ(endings(*pruner, history, 2, {1}, report), "P1 P1");
  EXPECT_EQ(pruner->promote(history), std::nullopt);  // two rivals: a third of them is nobody

  History longer({Direction::Minimize});
  // The fourth is the best of four, so it need not wait.
  EXPECT_EQ(endings(*pruner, longer, 6, {1}, report), "P1 P1 P1 . P1 P1");
  // Of six the best two go on: the fourth has, the second is next.
  EXPECT_EQ(pruner->promote(longer), 1);
  longer.change([](auto& trials) {
    trials[1].state = TrialState::Running;
    trials[1].system_attributes["lathe:paused"] = "false";
  });
  EXPECT_EQ(pruner->promote(longer), std::nullopt);
}

TEST(Pausing, APromotedTrialIsJudgedAtTheNextRung) {
  const auto pruner = make_pruner("successive-halving:min-resource=1,factor=2,pause=true");
  History history({Direction::Minimize});
  TrialRecord trial;
  trial.intermediate_values = {{1, 0.5}, {2, 0.4}};
  trial.system_attributes = {{"completed_rung_0", "0.5"}};
  history.change([&](auto& trials) { trials.push_back(trial); });
  Attributes attributes;
  EXPECT_EQ(pruner->judge(history, trial, attributes), Verdict::Pause);
  EXPECT_EQ(attributes.at("completed_rung_1"), "0.4");
}

TEST(Pruners, RefuseOptionsThatMakeNoSense) {
  const auto message = [](const char* text) -> std::string {
    try {
      make_pruner(text);
    } catch (const UserError& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_EQ(message("threshold"), "pruner \"threshold\": expected lower, upper or both");
  EXPECT_EQ(message("threshold:upper=high"),
            "pruner \"threshold\": upper=high: expected numbers separated by /");
  EXPECT_EQ(message("hyperband:bootstrap=3"),
            "pruner \"hyperband\": bootstrap=3: needs max-resource as a number");
  EXPECT_EQ(
      message("patience:pruner=medain"),
      "pruner \"patience\": unknown pruner \"medain\"; known: hyperband, median, none, patience, "
      "percentile, successive-halving, threshold");
}

}  // namespace
}  // namespace lathe::study
