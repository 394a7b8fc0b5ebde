#include "lathe/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "lathe/data/reviews.h"
#include "lathe/data/wordpiece_tokenizer.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;

// Stands for a training graph: one weight, changed by each step in a way that depends on all the
// step is given, so that two runs end alike only if they saw the same.
class OneWeight final : public engine::Executor {
 public:
  explicit OneWeight(State state = {{"w", Tensor::from<float>({}, {1.0f})},
                                    {"sum", Tensor::from<float>({}, {0.0f})}})
      : state_(std::move(state)) {}

  Feed run(const Feed& inputs) override {
    const auto ids = inputs.at("input_ids").data<std::int32_t>();
    const auto examples = inputs.at("examples").data<std::int32_t>();
    const double step = inputs.at("random").at(2), rate = inputs.at("learning_rate").at(0);
    rates.push_back(rate);
    applied.push_back(inputs.at("apply").at(0) == 1);
    seen.insert(seen.end(), examples.begin(), examples.end());
    float& w = state_.at("w").mutable_data<float>()[0];
    float& sum = state_.at("sum").mutable_data<float>()[0];
    sum += static_cast<float>(std::accumulate(ids.begin(), ids.end(), 0) % 97) +
           0.01f * static_cast<float>(examples[0]);
    Feed outputs;
    const bool is_broken = breaks_at == static_cast<std::int64_t>(step);
    if (applied.back() && !is_broken) {
      w = 0.9f * w + static_cast<float>(rate * step) * sum;
      sum = 0;
    }
    outputs["loss_sum"] =
        Tensor::from<float>({}, {is_broken ? std::numeric_limits<float>::quiet_NaN()
                                           : 2.0f * static_cast<float>(examples.size())});
    outputs["loss_count"] = Tensor::from<float>({}, {static_cast<float>(examples.size())});
    outputs["gradient_norm"] = Tensor::from<float>({}, {0.5f});
    return outputs;
  }
  int most_begun() const override { return most; }
  State state() const override { return state_; }
  void set_state(const State& values) override { state_ = values; }
  float weight() const { return static_cast<float>(state_.at("w").at(0)); }

  int most = 1;
  std::int64_t breaks_at = -1;
  std::vector<double> rates;
  std::vector<bool> applied;
  std::vector<std::int32_t> seen;

 private:
  State state_;
};

struct Saved {
  State state;
  TrainingProgress progress;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    hooks_.save = [this](const State& state, const TrainingProgress& progress) {
      saved_.push_back({state, progress});
    };
  }
  TrainingResult run(OneWeight& executor, const TrainingProgress& progress = {}) {
    StreamedTexts texts(dataset_, tokenizer_, 24, data::Truncation::Head,
                        next_examples(options_, dataset_.labels(), progress), {});
    return run_training(executor, texts, options_, hooks_, progress);
  }

  data::Dataset dataset_ = data::make_reviews({.num_train = 10}, "train");
  std::shared_ptr<const data::Tokenizer> tokenizer_ = data::reviews_tokenizer();
  TrainerOptions options_{
      .epochs = 2, .batch_examples = 3, .learning_rate = 0.5, .warmup = 0, .cycles = 1, .seed = 5};
  TrainerHooks hooks_;
  int asked_ = 0;
  std::vector<Saved> saved_;
};

TEST_F(TrainerTest, GivesAnExtensionACycleOfItsOwn) {
  std::vector<double> rates;
  hooks_.report = [&](const StepReport& report) { rates.push_back(report.learning_rate); };
  OneWeight whole;
  run(whole);  // 2 epochs of 4 steps
  const std::vector<double> first = rates;
  options_.ended = {2};
  options_.epochs = 3;
  rates.clear();
  OneWeight extended;
  run(extended);
  ASSERT_EQ(rates.size(), 12u);
  EXPECT_EQ(std::vector<double>(rates.begin(), rates.begin() + 8), first);
  EXPECT_EQ(rates[8], 0.5);
  EXPECT_EQ(rates[10], 0.25);
}

TEST_F(TrainerTest, DrawsClassesAlikeWhenBalanced) {
  std::vector<std::int32_t> labels(10, 0);
  labels[3] = labels[7] = 1;
  options_.is_balanced = true;
  const std::vector<std::int64_t> lengths(10, 1);
  const data::BatchPlan plan = plan_epoch(options_, lengths, labels, 0);
  ASSERT_EQ(plan.order.size(), 10u);
  const auto of_one = std::ranges::count_if(plan.order, [&](std::int64_t example) {
    return labels[static_cast<std::size_t>(example)] == 1;
  });
  EXPECT_EQ(of_one, 5);
  std::vector<std::int64_t> order = next_examples(options_, labels, {});
  EXPECT_EQ(order.front(), plan.order.front());
  std::ranges::sort(order);
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(TrainerTest, SeesEveryExampleOnceAnEpoch) {
  OneWeight executor;
  const TrainingResult result = run(executor);
  EXPECT_EQ(result.ending, Ending::Finished);
  EXPECT_EQ(result.num_steps, 8);  // 10 examples are batches of 3, 3, 3 and 1
  EXPECT_EQ(result.progress.step, 8);
  EXPECT_EQ(result.loss, 2.0);
  ASSERT_EQ(executor.seen.size(), 20u);
  std::vector<std::int32_t> first(executor.seen.begin(), executor.seen.begin() + 10);
  std::vector<std::int32_t> second(executor.seen.begin() + 10, executor.seen.end());
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(first, second);
}

TEST_F(TrainerTest, FollowsTheSchedule) {
  OneWeight executor;
  run(executor);
  EXPECT_THAT(executor.rates, ElementsAre(0.5, 0.4375, 0.375, 0.3125, 0.25, 0.1875, 0.125, 0.0625));
}

TEST_F(TrainerTest, StopsAfterAGivenNumberOfSteps) {
  options_.max_steps = 3;
  OneWeight executor;
  EXPECT_EQ(run(executor).progress.step, 3);
  EXPECT_FLOAT_EQ(static_cast<float>(executor.rates[1]), 0.5f * 2 / 3);
}

TEST_F(TrainerTest, GoesOnFromAnyStepToTheSameWeights) {
  for (const std::int64_t accumulation : {1, 2}) {
    for (const std::int64_t budget : {0, 60}) {
      options_.accumulation = accumulation;
      options_.batch_tokens = budget;
      options_.checkpoint_every = 1;
      saved_.clear();
      OneWeight whole;
      const TrainingResult expected = run(whole);
      ASSERT_EQ(static_cast<std::int64_t>(saved_.size()), expected.num_steps);
      for (const Saved& saved : std::vector(saved_)) {
        OneWeight continued(saved.state);
        const TrainingResult result = run(continued, saved.progress);
        EXPECT_EQ(continued.weight(), whole.weight()) << "from step " << saved.progress.step;
        EXPECT_EQ(result.loss, expected.loss);
        EXPECT_EQ(result.progress, expected.progress);
      }
    }
  }
}

TEST_F(TrainerTest, SavesAtTheEndOfEachEpoch) {
  OneWeight executor;
  run(executor);
  ASSERT_EQ(saved_.size(), 2u);
  EXPECT_EQ(saved_[0].progress.step, 4);
  EXPECT_EQ(saved_[1].progress.step, 8);
}

TEST_F(TrainerTest, AppliesTheLastBatchOfEachStep) {
  options_.accumulation = 3;
  OneWeight executor;
  const TrainingResult result = run(executor);
  EXPECT_EQ(result.num_steps, 4);
  EXPECT_THAT(executor.applied, ElementsAre(false, false, true, true, false, false, true, true));
}

TEST_F(TrainerTest, FinishesTheStepAndSavesWhenAskedToStop) {
  hooks_.should_stop = [this] { return ++asked_ == 3; };
  OneWeight executor;
  EXPECT_EQ(run(executor).ending, Ending::Interrupted);
  ASSERT_EQ(saved_.size(), 1u);
  EXPECT_EQ(saved_[0].progress.step, 3);
  OneWeight continued(saved_[0].state), whole;
  EXPECT_EQ(run(continued, saved_[0].progress).ending, Ending::Finished);
  run(whole);
  EXPECT_EQ(continued.weight(), whole.weight());
}

TEST_F(TrainerTest, KeepsTheBestAndStopsWhenItGetsNoBetter) {
  options_.epochs = 10;
  options_.validate_every = 2;
  options_.patience = 2;
  const std::vector<double> scores{0.5, 0.7, 0.7, 0.6, 0.9};
  std::vector<float> weights;
  hooks_.validate = [&](const State& state, const TrainingProgress&) {
    weights.push_back(static_cast<float>(state.at("w").at(0)));
    return scores[weights.size() - 1];
  };
  OneWeight executor;
  const TrainingResult result = run(executor);
  EXPECT_EQ(result.ending, Ending::StoppedEarly);
  EXPECT_EQ(result.progress.step, 8);
  EXPECT_EQ(result.progress.best_step, 4);
  EXPECT_EQ(result.progress.best_score, 0.7);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(static_cast<float>(result.best->at("w").at(0)), weights[1]);
  // Whoever resumes this run is told the same and trains no more.
  OneWeight again(saved_.back().state);
  EXPECT_EQ(run(again, saved_.back().progress).ending, Ending::StoppedEarly);
  EXPECT_TRUE(again.rates.empty());
}

TEST_F(TrainerTest, StopsAtALossThatIsNotFinite) {
  hooks_.explain = [](const State&, const Feed&) { return "first in node \"e\" (exp)"; };
  hooks_.last_checkpoint = [] { return "run/checkpoints/step-4"; };
  OneWeight executor;
  executor.breaks_at = 6;
  EXPECT_EQ(io::refusal("", [&] { run(executor); }),
            "step 6: the loss is not finite; first in node \"e\" (exp); "
            "the last good checkpoint is run/checkpoints/step-4");
  EXPECT_EQ(executor.rates.size(), 6u);
}

TEST_F(TrainerTest, TakesTheLossOfAStepWhileTheNextOneRuns) {
  options_.accumulation = 2;
  OneWeight waiting, busy;
  busy.most = 2;
  std::vector<std::size_t> begun;  // batches, when each step is reported
  hooks_.report = [&](const StepReport&) { begun.push_back(busy.rates.size()); };
  const TrainingResult result = run(busy);
  EXPECT_THAT(begun, ElementsAre(3, 4, 7, 8));  // nothing is begun across the end of an epoch
  hooks_.report = nullptr;
  const TrainingResult expected = run(waiting);
  EXPECT_EQ(busy.weight(), waiting.weight());
  EXPECT_EQ(result.progress, expected.progress);
  EXPECT_EQ(result.tokens, expected.tokens);
  EXPECT_EQ(result.loss, expected.loss);
}

TEST_F(TrainerTest, NamesTheStepThatBrokeWhenTheNextOneRuns) {
  OneWeight executor;
  executor.most = 2;
  executor.breaks_at = 6;
  EXPECT_EQ(io::refusal("", [&] { run(executor); }),
            "step 6: the loss is not finite; no checkpoint was written before");
  EXPECT_EQ(executor.rates.size(), 7u);
}

TEST_F(TrainerTest, RefusesOptionsThatMakeNoRun) {
  OneWeight executor;
  options_.epochs = 0;
  EXPECT_EQ(io::refusal("", [&] { run(executor); }), "0 epochs: expected at least 1");
  options_.epochs = 1;
  options_.learning_rate = -1;
  EXPECT_EQ(io::refusal("", [&] { run(executor); }), "a learning rate of -1: expected 0 or more");
}

}  // namespace
}  // namespace lathe::train
