#include "lathe/study/samplers/expected_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

class ExpectedLosses : public testing::Test {
 protected:
  // A trial with its reports after steps 1, 2, ...; the last value is what a complete one scored.
  void add(TrialState state, const std::vector<double>& reports, Attributes attributes = {}) {
    add_finished(history_, {{"x", shared(FloatDistribution{0, 1}), 0.5}}, {}, std::move(attributes),
                 state);
    history_.change([&](std::vector<TrialRecord>& trials) {
      for (std::size_t i = 0; i < reports.size(); ++i)
        trials.back().intermediate_values[static_cast<int>(i) + 1] = reports[i];
      if (state == TrialState::Complete) trials.back().values = {reports.back()};
    });
  }
  std::vector<double> expected() {
    Observations observations;
    observations.update(history_, -1, false);
    std::vector<std::size_t> rows(observations.rows().size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    return expected_losses(observations, rows);
  }

  History history_{{Direction::Maximize}};
};

TEST_F(ExpectedLosses, ProjectsReportsByThoseOfCompleteTrials) {
  for (const double report : {0.6, 0.7, 0.8, 0.9})
    add(TrialState::Complete, {report, 0.5 + report / 2});
  add(TrialState::Pruned, {0.5});
  add(TrialState::Pruned, {0.3});
  EXPECT_THAT(expected(), ElementsAre(DoubleNear(-0.8, 1e-9), DoubleNear(-0.85, 1e-9),
                                      DoubleNear(-0.9, 1e-9), DoubleNear(-0.95, 1e-9),
                                      DoubleNear(-0.75, 1e-9), DoubleNear(-0.65, 1e-9)));
}

TEST_F(ExpectedLosses, TakesTrialsForTheWorstWhereFewAreComplete) {
  add(TrialState::Complete, {0.6, 0.8});
  add(TrialState::Complete, {0.7, 0.7});
  add(TrialState::Pruned, {0.5});
  EXPECT_THAT(expected(), ElementsAre(-0.8, -0.7, -0.7));
}

TEST_F(ExpectedLosses, NeverExpectsMoreOfATrialThatWasGivenUpThanTheBest) {
  for (const double report : {0.6, 0.7, 0.8, 0.9})
    add(TrialState::Complete, {report, 0.5 + report / 2});
  add(TrialState::Pruned, {0.99});
  EXPECT_NEAR(expected().back(), -0.95, 1e-9);
  // A line that falls says that reports tell nothing.
  history_ = History{{Direction::Maximize}};
  for (const double report : {0.6, 0.7, 0.8, 0.9})
    add(TrialState::Complete, {report, 1 - report / 2});
  add(TrialState::Pruned, {0.5});
  EXPECT_NEAR(expected().back(), -0.625, 1e-9);
}

TEST_F(ExpectedLosses, SayNothingWithoutACompleteTrial) {
  add(TrialState::Pruned, {0.5});
  EXPECT_THAT(expected(), IsEmpty());
}

TEST_F(ExpectedLosses, TakeWhatSaysNothingForTheWorst) {
  for (const double report : {0.6, 0.7, 0.8, 0.9}) add(TrialState::Complete, {report, report});
  add(TrialState::Pruned, {});
  add(TrialState::Pruned, {std::nan("")});
  EXPECT_THAT(expected(), ElementsAre(-0.6, -0.7, -0.8, -0.9, -0.6, -0.6));
}

}  // namespace
}  // namespace lathe::study
