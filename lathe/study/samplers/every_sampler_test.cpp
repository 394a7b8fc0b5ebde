// What every sampler promises, run over all that are registered: a suggestion is a function of the
// study's seed, the trial's number and the results so far, whoever asks and in whatever order the
// results came.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lathe/core/registry.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/study/storages/memory_storage.h"
#include "lathe/study/study.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

constexpr int kTrials = 72;
constexpr int kBatch = 4;

// Every kind of parameter that has finitely many values, some conditional.
Space countable_space() {
  const auto format =
      CategoricalDistribution{{std::string("int"), std::string("fixed"), std::string("binary")}};
  return {
      {.name = "format", .distribution = shared(format)},
      {.name = "width",
       .distribution = shared(IntDistribution{.low = 2, .high = 8, .step = 2}),
       .parent = "format",
       .parent_values = {0, 1}},
      {.name = "block", .distribution = shared(IntDistribution{.low = 1, .high = 16, .log = true})},
      {.name = "rate",
       .distribution = shared(FloatDistribution{.low = 0, .high = 0.5, .step = 0.25})},
      {.name = "only", .distribution = shared(IntDistribution{.low = 3, .high = 3})}};
}

Space continuous_space() {
  Space space = countable_space();
  space.push_back({.name = "x", .distribution = shared(FloatDistribution{.low = -5, .high = 5})});
  space.push_back({.name = "lr",
                   .distribution = shared(FloatDistribution{.low = 1e-5, .high = 1, .log = true}),
                   .parent = "format",
                   .parent_values = {1}});
  return space;
}

struct Case {
  std::string name;
  Space space;
  bool is_declared = true;
  int num_objectives = 1;
};

std::vector<Case> cases() {
  return {{.name = "countable", .space = countable_space()},
          {.name = "continuous", .space = continuous_space()},
          {.name = "asked as it goes", .space = continuous_space(), .is_declared = false},
          {.name = "two objectives", .space = countable_space(), .num_objectives = 2}};
}

// Some trials fail and some are pruned, as in life.
Outcome outcome_of(const TrialRecord& trial, int num_objectives) {
  double value = 0;
  for (const Parameter& each : trial.parameters) value += std::cos(each.value + 1) * each.value;
  if (trial.number % 11 == 5) return {.state = TrialState::Fail};
  if (trial.number % 7 == 3 && num_objectives == 1) return {.state = TrialState::Pruned};
  Outcome outcome = {.values = {value}};
  if (num_objectives == 2) outcome.values.push_back(-value * value + trial.parameters[0].value);
  return outcome;
}

struct Manner {
  bool is_forgetful = false;  // a new Study for each batch, as another process would have
  bool is_reversed = false;   // results come in the other order
};

// The points of a study, one line each.
std::string run(const std::string& sampler, const Case& each, const Manner& manner) {
  auto storage = std::make_shared<MemoryStorage>();
  const std::vector<Direction> directions(static_cast<std::size_t>(each.num_objectives),
                                          Direction::Minimize);
  StudyOptions options = {.sampler = sampler, .seed = 5};
  if (each.is_declared) options.space = each.space;
  auto study = std::make_unique<Study>(Study::create(storage, "s", directions, options));
  for (int i = 0; i < kTrials; i += kBatch) {
    if (manner.is_forgetful) study = std::make_unique<Study>(Study::open(storage, "s"));
    std::vector<Trial> batch;
    for (int k = 0; k < kBatch; ++k) {
      std::optional<Trial> trial = study->ask();
      if (!trial) break;
      if (!each.is_declared) trial->suggest(each.space);
      trial->report(1, trial->number() * 0.5);
      EXPECT_TRUE(trial->flush());
      batch.push_back(std::move(*trial));
    }
    if (manner.is_reversed) std::ranges::reverse(batch);
    for (Trial& trial : batch)
      EXPECT_TRUE(study->tell(trial, outcome_of(trial.record(), each.num_objectives)));
  }
  std::string text;
  for (const TrialRecord& trial : study->history().trials()) {
    text += fmt::format("{}:", trial.number);
    for (const Parameter& parameter : trial.parameters)
      text += fmt::format(" {}={}", parameter.name, parameter.value);
    text += "\n";
  }
  return text;
}

class EverySampler : public testing::TestWithParam<std::string> {
 protected:
  // Runs `body` with each case that the sampler accepts and its points in the plain manner.
  void for_each_case(const std::function<void(const Case&, const std::string& points)>& body) {
    int num_accepted = 0;
    for (const Case& each : cases()) {
      SCOPED_TRACE(each.name);
      std::string points;
      const std::string error = error_text([&] { points = run(GetParam(), each, {}); });
      if (error != "no error") {
        // A grid of continuous parameters, say: an error of one line before the first trial.
        EXPECT_NE(error, "internal error");
        continue;
      }
      ++num_accepted;
      body(each, points);
    }
    EXPECT_GT(num_accepted, 0);
  }
};

TEST_P(EverySampler, RepeatsItselfFromASeed) {
  for_each_case([&](const Case& each, const std::string& points) {
    EXPECT_EQ(run(GetParam(), each, {}), points);
  });
}

TEST_P(EverySampler, ContinuesTheSameSequenceInANewProcess) {
  for_each_case([&](const Case& each, const std::string& points) {
    EXPECT_EQ(run(GetParam(), each, {.is_forgetful = true}), points);
  });
}

TEST_P(EverySampler, DoesNotDependOnTheOrderOfResults) {
  for_each_case([&](const Case& each, const std::string& points) {
    EXPECT_EQ(run(GetParam(), each, {.is_reversed = true}), points);
    EXPECT_EQ(run(GetParam(), each, {.is_forgetful = true, .is_reversed = true}), points);
  });
}

TEST(OptunaPreset, RepeatsItselfWithinAProcessOnly) {
  const Case continuous = cases()[1];
  const std::string points = run("random:preset=optuna-3", continuous, {});
  EXPECT_EQ(run("random:preset=optuna-3", continuous, {}), points);
  EXPECT_NE(run("random:preset=optuna-3", continuous, {.is_forgetful = true}), points);
}

INSTANTIATE_TEST_SUITE_P(Registered, EverySampler,
                         testing::ValuesIn(Registry<SamplerKind>::instance().names()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace lathe::study
