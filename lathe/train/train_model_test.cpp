#include "lathe/train/train_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::train {
namespace {

using testing::HasSubstr;

// Forty short texts whose label is whether they say "fine" or "poor".
data::Dataset opinions() {
  data::Dataset dataset;
  dataset.label_names = {"0", "1"};
  const char* const endings[] = {"film", "plot .", "act , the film", "very film !", "the plots"};
  for (int i = 0; i < 40; ++i)
    dataset.examples.push_back(
        {fmt::format("a {} {}", i % 2 == 1 ? "fine" : "poor", endings[i / 2 % 5]), i % 2});
  return dataset;
}

class TrainModel : public testing::Test {
 protected:
  TrainModel() {
    options_.execution.device = "reference";
    options_.trainer.epochs = 4;
    options_.trainer.batch_examples = 8;
    options_.trainer.learning_rate = 2e-2;
    options_.trainer.checkpoint_every = 3;
  }
  TrainOutcome run(RunDirectory* directory = nullptr, const data::Dataset& validation = {}) {
    io::Model model =
        directory && directory->checkpoint() ? directory->checkpoint()->model : load();
    return train_model(std::move(model), opinions(), validation, options_, callbacks_, directory);
  }
  io::Model load() const {
    return io::load_model((scratch_ / "m").string(), {.task = task_of_run_});
  }
  static void expect_identical(const State& got, const State& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (const auto& [name, tensor] : expected)
      EXPECT_TRUE(identical(got.at(name), tensor)) << name;
  }

  io::ScratchDirectory scratch_;
  std::string model_directory_ = io::write_tiny_bert(scratch_, "m");
  std::string task_of_run_ = "classify";
  TrainOptions options_;
  TrainCallbacks callbacks_;
  std::vector<double> losses_;
};

TEST_F(TrainModel, LearnsWhatTheTextsSay) {
  options_.graph.dropout = false;  // a tenth of 8 features is too much to learn through
  options_.trainer.epochs = 60;
  options_.trainer.learning_rate = 1e-2;
  callbacks_.step = [&](const StepReport& report) { losses_.push_back(report.loss); };
  const TrainOutcome outcome = run();
  EXPECT_EQ(outcome.result.ending, Ending::Finished);
  ASSERT_EQ(losses_.size(), 300u);
  EXPECT_GT(losses_.front(), 0.4);
  EXPECT_LT(losses_.back(), 0.1);
  EXPECT_TRUE(outcome.model.fresh.empty());
}

TEST_F(TrainModel, LeavesAModelAndItsTraces) {
  RunDirectory directory = RunDirectory::create(scratch_ / "run", {{"lr", 0.02}});
  const TrainOutcome outcome = run(&directory);
  const io::Model written = io::load_model((scratch_ / "run").string());
  expect_identical(written.state, outcome.model.state);
  for (const char* name : {"run.json", "metrics.jsonl", "vocab.txt", "config.json", "manifest.json",
                           "checkpoints/latest", "checkpoints/step-18", "checkpoints/step-20"})
    EXPECT_TRUE(std::filesystem::exists(scratch_ / (std::string("run/") + name))) << name;
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run/checkpoints/step-15"));
  const std::string metrics = scratch_.read("run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 20);
}

TEST_F(TrainModel, LeavesNothingAtItsEndWhereNothingIsWanted) {
  options_.leaves_model = false;
  options_.trainer.checkpoint_every = 1000;
  RunDirectory directory = RunDirectory::create(scratch_ / "run", {});
  EXPECT_EQ(run(&directory).result.ending, Ending::Finished);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run/manifest.json"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "run/checkpoints"));
}

TEST_F(TrainModel, GoesOnToTheSameBitsAfterAnInterruption) {
  RunDirectory whole = RunDirectory::create(scratch_ / "whole", {});
  const State expected = run(&whole).result.state;

  int steps = 0;
  callbacks_.should_stop = [&] { return ++steps == 7; };
  std::optional<RunDirectory> first = RunDirectory::create(scratch_ / "run", {});
  EXPECT_EQ(run(&*first).result.ending, Ending::Interrupted);
  EXPECT_EQ(error_text([&] { RunDirectory::open(scratch_ / "run"); }),
            (scratch_ / "run").string() + ": another process is at work there");
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run/manifest.json"));

  std::optional<RunDirectory> second = RunDirectory::open(scratch_ / "run");
  ASSERT_TRUE(second);
  ASSERT_TRUE(second->checkpoint());
  EXPECT_EQ(second->checkpoint()->progress.step, 7);
  expect_identical(run(&*second).result.state, expected);
  EXPECT_EQ(scratch_.read("run/model.safetensors"), scratch_.read("whole/model.safetensors"));
  const std::string metrics = scratch_.read("run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 20);

  // A run that has finished is only written again.
  second.reset();
  std::optional<RunDirectory> third = RunDirectory::open(scratch_ / "run");
  const TrainOutcome again = run(&*third);
  EXPECT_EQ(again.result.tokens, 0);
  expect_identical(again.result.state, expected);
}

TEST_F(TrainModel, PausesForAChangeAndGoesOnToTheSameBitsWithoutOne) {
  const State expected = run().result.state;
  options_.trainer.pause_after = 1;
  RunDirectory directory = RunDirectory::create(scratch_ / "run", {});
  TrainOutcome first = run(&directory);
  EXPECT_EQ(first.result.ending, Ending::Paused);
  EXPECT_EQ(first.result.progress.step, 5);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run/manifest.json"));
  const PausedRun paused{first.result.state, first.result.progress};
  options_.trainer.pause_after = 0;
  options_.after = &paused;
  const TrainOutcome second =
      train_model(std::move(first.model), opinions(), {}, options_, callbacks_);
  EXPECT_EQ(second.result.ending, Ending::Finished);
  expect_identical(second.result.state, expected);
}

// The first step of AdamW is as long as the rate, whatever the gradient is, by moments that know
// how young they are.
TEST_F(TrainModel, CountsTheStepsOfLateParametersFromTheirBirth) {
  options_.trainer.pause_after = 3;
  options_.graph.weight_decay = 0;
  options_.graph.eps = 1e-12;
  options_.trainer.decay = Decay::Constant;
  options_.trainer.warmup = 0;
  TrainOutcome first = run();
  PausedRun paused{first.result.state, first.result.progress};
  paused.state.erase("classifier.bias");
  const Tensor before = first.model.state.at("classifier.bias");
  options_.trainer.pause_after = 0;
  options_.trainer.max_steps = paused.progress.step + 1;
  options_.after = &paused;
  const TrainOutcome second =
      train_model(std::move(first.model), opinions(), {}, options_, callbacks_);
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_NEAR(std::abs(second.model.state.at("classifier.bias").at(i) - before.at(i)), 2e-2,
                1e-6);
}

TEST_F(TrainModel, KeepsTheBestWeightsOverAResume) {
  options_.trainer.validate_every = 2;
  std::vector<Validation> seen;
  callbacks_.validation = [&](const Validation& validation) { seen.push_back(validation); };
  data::Dataset validation = opinions();
  validation.examples.resize(9);
  std::optional<RunDirectory> directory = RunDirectory::create(scratch_ / "run", {});
  const TrainOutcome outcome = run(&*directory, validation);
  directory.reset();
  ASSERT_EQ(seen.size(), 10u);
  double best = 0;
  for (const Validation& one : seen) {
    ASSERT_TRUE(one.classes);
    EXPECT_EQ(one.classes->examples, 9);
    best = std::max(best, one.classes->accuracy);
  }
  EXPECT_EQ(outcome.result.progress.best_score, best);
  std::optional<RunDirectory> resumed = RunDirectory::open(scratch_ / "run");
  expect_identical(run(&*resumed, validation).model.state, outcome.model.state);
  EXPECT_THAT(scratch_.read("run/metrics.jsonl"), HasSubstr("\"validation_accuracy\":"));
}

TEST_F(TrainModel, LearnsToGuessMaskedTokens) {
  task_of_run_ = "mlm";
  options_.graph.objective = "mlm";
  options_.trainer.epochs = 8;
  std::vector<double> validation_losses;
  callbacks_.validation = [&](const Validation& one) { validation_losses.push_back(one.loss); };
  const TrainOutcome outcome = run(nullptr, opinions());
  EXPECT_EQ(outcome.model.task, "mlm");
  ASSERT_EQ(validation_losses.size(), 8u);
  EXPECT_LT(validation_losses.back(), validation_losses.front());
}

TEST_F(TrainModel, LearnsTheNextTokenAndWritesADecoder) {
  task_of_run_ = options_.graph.objective = "causal-lm";
  options_.graph.dropout = false;
  options_.execution.device = "cpu";
  options_.trainer.epochs = 20;
  callbacks_.step = [&](const StepReport& report) { losses_.push_back(report.loss); };
  const TrainOutcome outcome = run();
  // Every text begins "a fine" or "a poor": the start is known, and much of what follows.
  EXPECT_LT(losses_.back(), losses_.front() / 2);
  io::write_huggingface(scratch_ / "decoder", outcome.model);
  const io::Model read = io::load_model((scratch_ / "decoder").string());
  EXPECT_EQ(read.task, "causal-lm");
  EXPECT_EQ(print(read.graph), print(outcome.model.graph));
}

TEST_F(TrainModel, AddsUpBatchesToTheSameStep) {
  options_.graph.dropout = false;
  options_.trainer.epochs = 1;
  const State whole = run().result.state;
  options_.trainer.batch_examples = 4;
  options_.trainer.accumulation = 2;
  const State added = run().result.state;
  for (const auto& [name, tensor] : whole) {
    // The bias of keys shifts all scores alike and has no gradient but rounding errors.
    if (name.starts_with("optimizer.") || name.ends_with("key.bias")) continue;
    // Sums of float32 gradients in another order, divided by root mean squares of a few steps.
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      EXPECT_NEAR(added.at(name).at(i), tensor.at(i), 1e-3) << name;
  }
}

TEST_F(TrainModel, LeavesFrozenParametersAlone) {
  options_.graph.freeze = {"^bert\\.embeddings"};
  const TrainOutcome outcome = run();
  const io::Model before = load();
  for (const auto& [name, tensor] : before.state)
    EXPECT_EQ(identical(outcome.model.state.at(name), tensor), name.starts_with("bert.embeddings"))
        << name;
}

TEST_F(TrainModel, NamesWhereALossThatIsNotFiniteBegan) {
  RunDirectory directory = RunDirectory::create(scratch_ / "run", {});
  options_.trainer.learning_rate = 1e20;
  options_.trainer.decay = Decay::Constant;
  options_.trainer.checkpoint_every = 1;
  const std::string message = io::refusal("", [&] { run(&directory); });
  EXPECT_THAT(message, testing::MatchesRegex(
                           "step [0-9]+: the (loss|gradient) is not finite; first in node .*; the "
                           "last good checkpoint is .*/run/checkpoints/step-[0-9]+"));
}

TEST_F(TrainModel, RefusesExamplesWithoutLabels) {
  data::Dataset examples = opinions();
  examples.examples[3].label = data::kNoLabel;
  EXPECT_EQ(io::refusal("", [&] { train_model(load(), examples, {}, options_); }),
            "example 4 has no label");
  examples.examples[3].label = 2;
  EXPECT_EQ(io::refusal("", [&] { train_model(load(), examples, {}, options_); }),
            "example 4 has label 2, but the model knows 0 to 1");
}

}  // namespace
}  // namespace lathe::train
