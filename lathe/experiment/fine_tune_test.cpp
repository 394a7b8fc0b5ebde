#include "lathe/experiment/fine_tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune_run.h"
#include "lathe/experiment/prune.h"
#include "lathe/experiment/testing/tiny_training.h"

namespace lathe::experiment {
namespace {

using testing::HasSubstr;

class FineTune : public TinyTraining {
 protected:
  FineTune() {
    options_.trainer.epochs = 40;
    options_.graph.dropout = false;
  }
};

TEST_F(FineTune, LearnsAndIsTested) {
  std::vector<std::string> activities;
  std::int64_t held_out = -1;
  callbacks_.start = [&](const FineTuneStart& start) { held_out = start.held_out; };
  callbacks_.progress = [&](const Progress& now) {
    if (activities.empty() || activities.back() != now.activity) activities.push_back(now.activity);
  };
  const FineTuned result = run();
  EXPECT_EQ(held_out, 0);
  EXPECT_THAT(activities, testing::ElementsAre("training", "evaluating"));
  ASSERT_TRUE(result.test.has_value());
  EXPECT_EQ(result.test->examples, 12);
  EXPECT_EQ(result.test->accuracy, 1.0);
  EXPECT_THAT(result.model.label_names, testing::ElementsAre("bad", "good"));
}

TEST_F(FineTune, MatchesLabelsByName) {
  // The model's label 0 is "bad"; names sort the other way round here, and still mean the same.
  const FineTuned first = run();
  options_.data = write_opinions(scratch_, "more", "good", "bad");
  const ModelEvaluation swapped = evaluate_on(first.model, {.data = options_.data}, {});
  EXPECT_EQ(swapped.classes->accuracy, 0.0);
  options_.data = write_opinions(scratch_, "other", "worse", "better");
  EXPECT_THAT(error_text([&] { evaluate_on(first.model, {.data = options_.data}, {}); }),
              HasSubstr("better"));
}

TEST_F(FineTune, LeavesARunThatGoesOnToTheSameBits) {
  options_.trainer.epochs = 4;
  options_.out = scratch_ / "whole";
  const FineTuned whole = run();

  options_.out = scratch_ / "parts";
  int steps = 0;
  callbacks_.step = [&](const train::StepReport&) { ++steps; };
  callbacks_.should_stop = [&] { return steps >= 7; };
  EXPECT_EQ(run().training.ending, train::Ending::Interrupted);
  FineTuneOptions resumed;
  resumed.out = options_.out;
  resumed.resumes = true;
  ASSERT_TRUE(take_up_run(resumed, {}));
  const FineTuned second = fine_tune(resumed, {});
  EXPECT_EQ(second.training.progress.step, whole.training.progress.step);
  for (const auto& [name, tensor] : whole.model.state)
    EXPECT_TRUE(identical(second.model.state.at(name), tensor)) << name;
}

// A finished run of two epochs that is extended to four ends where one of four does.
TEST_F(FineTune, IsExtendedToTheSameBits) {
  options_.trainer.epochs = 4;
  options_.trainer.cycles = 4;
  const FineTuned whole = run();

  options_.trainer.epochs = 2;
  options_.trainer.cycles = 2;
  options_.out = scratch_ / "extended";
  run();
  FineTuneOptions longer;
  longer.out = options_.out;
  longer.resumes = true;
  longer.trainer.epochs = 4;
  ASSERT_TRUE(take_up_run(longer, {"epochs"}));
  EXPECT_EQ(longer.trainer.cycles, 4);
  const FineTuned extended = fine_tune(longer, {});
  EXPECT_EQ(extended.training.progress.step, whole.training.progress.step);
  for (const auto& [name, tensor] : whole.model.state)
    EXPECT_TRUE(identical(extended.model.state.at(name), tensor)) << name;

  FineTuneOptions again;
  again.out = options_.out;
  again.trainer.epochs = 5;
  ASSERT_TRUE(take_up_run(again, {"epochs"})) << "what was recorded is the extended run";
  EXPECT_EQ(again.trainer.cycles, 5);
  again.trainer.epochs = 3;
  EXPECT_THAT(error_text([&] { take_up_run(again, {"epochs"}); }),
              HasSubstr("epochs 3: the run in"));
}

TEST_F(FineTune, RemembersHowItReadTexts) {
  options_.trainer.epochs = 1;
  options_.length = 7;
  options_.truncation = data::Truncation::HeadTail;
  options_.out = scratch_ / "run";
  run();
  const io::Model model = io::load_model(options_.out.string());
  EXPECT_EQ(model.reading.length, 7);
  EXPECT_EQ(model.reading.truncation, data::Truncation::HeadTail);
  EXPECT_EQ(model.labels, LabelKind::Class);
  EXPECT_TRUE(std::filesystem::exists(options_.out / "results.json"));
  EXPECT_TRUE(std::filesystem::exists(options_.out / "curves.svg"));
}

TEST_F(FineTune, ReplacesAHeadWhenAsked) {
  options_.trainer.epochs = 1;
  options_.out = scratch_ / "first";
  run();
  options_.model = options_.out.string();
  options_.out = scratch_ / "second";
  options_.data = write_opinions(scratch_, "other", "worse", "better");
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("expected the same names"));
  options_.new_head = true;
  options_.labels = 3;
  const FineTuned result = run();
  EXPECT_THAT(result.model.label_names, testing::ElementsAre("better", "worse", "LABEL_2"));
}

TEST_F(FineTune, TrainsPathsOfLoraAndNothingElse) {
  options_.trainer.epochs = 2;
  options_.lora = "rank=2,targets=query|value";
  options_.out = scratch_ / "run";
  const State before = io::load_model(options_.model).state;
  std::vector<std::string> trained;
  callbacks_.start = [&](const FineTuneStart& start) { trained = start.trained; };
  const FineTuned result = run();
  EXPECT_EQ(trained.size(), 4u);
  for (const auto& [name, tensor] : before)
    EXPECT_TRUE(identical(result.model.state.at(name), tensor)) << name;
  EXPECT_TRUE(std::filesystem::exists(options_.out / "adapter/adapter_model.safetensors"));
}

TEST(CompleteRecipe, FollowsWhatWasSaidAndWhatTrains) {
  FineTuneOptions options;
  complete_recipe(options, {});
  EXPECT_EQ(options.trainer.cycles, 2);
  EXPECT_EQ(options.trainer.learning_rate, 2e-4);
  complete_recipe(options, {"epochs"});
  EXPECT_EQ(options.trainer.cycles, 1);
  options.lora = "rank=8";
  complete_recipe(options, {"lr"});
  EXPECT_EQ(options.trainer.learning_rate, 2e-4);
  complete_recipe(options, {});
  EXPECT_EQ(options.trainer.learning_rate, 1e-3);
}

TEST_F(FineTune, TrainsMaskedPathsAndWritesNoAdapterOfThem) {
  const io::Model pruned =
      prune(io::load_model(options_.model), {.sparsity = 0.5}, engine::ExecutionOptions{}).model;
  io::write_checkpoint(scratch_ / "pruned", pruned);
  options_.model = (scratch_ / "pruned").string();
  options_.lora = "rank=2,targets=encoder";
  options_.trainer.epochs = 1;
  options_.out = scratch_ / "run";
  std::vector<std::string> notices;
  callbacks_.notice = [&](const std::string& line) { notices.push_back(line); };
  run();
  EXPECT_FALSE(std::filesystem::exists(options_.out / "adapter"));
  EXPECT_THAT(notices,
              testing::ElementsAre("no adapter is written: masks cover the LoRA paths, which an "
                                   "adapter has no place for"));
}

TEST_F(FineTune, TakesTheNamesOfTheDataForAFreshHead) {
  State weights = io::tiny_weights();
  weights.erase("classifier.weight");
  weights.erase("classifier.bias");
  options_.model = io::write_tiny_bert(scratch_, "headless", weights);
  options_.data = write_opinions(scratch_, "words", "no", "yes");
  options_.trainer.epochs = 1;
  EXPECT_THAT(run().model.label_names, testing::ElementsAre("no", "yes"));
}

TEST_F(FineTune, KeepsAHeadThatKnowsMoreLabelsThanTheData) {
  options_.trainer.epochs = 1;
  options_.out = scratch_ / "three";
  // A third class that only the first data has.
  const std::string three = write_opinions(scratch_, "three-classes");
  scratch_.write("three-classes/train.csv",
                 scratch_.read("three-classes/train.csv") + "the plot,middling\n");
  options_.data = three;
  EXPECT_THAT(run().model.label_names, testing::ElementsAre("bad", "good", "middling"));
  options_.model = options_.out.string();
  options_.data = write_opinions(scratch_, "two-classes");
  options_.out.clear();
  std::vector<std::string> fresh;
  callbacks_.start = [&](const FineTuneStart& start) { fresh = start.model.fresh; };
  EXPECT_THAT(run().model.label_names, testing::ElementsAre("bad", "good", "middling"));
  EXPECT_THAT(fresh, testing::IsEmpty());
}

TEST_F(FineTune, RefusesOptionsThatMakeNoSenseTogether) {
  options_.lora = "rank=2";
  options_.graph.freeze = {"embeddings"};
  EXPECT_EQ(error_text([&] { run(); }),
            "freeze: with lora everything but its paths and fresh heads is frozen already");
  options_.graph.freeze.clear();
  options_.lora.clear();
  options_.validation = 40;
  EXPECT_EQ(error_text([&] { run(); }), "validation 40: the data has 40 examples only");
}

TEST_F(FineTune, RefusesWhatIsForTextsOfAModelOfNumbers) {
  std::string rows = "a,b,label\n";
  for (int i = 0; i < 20; ++i) rows += fmt::format("{},{},{}\n", i, 20 - i, i < 10 ? "x" : "y");
  std::filesystem::create_directory(scratch_ / "numbers");
  scratch_.write("numbers/train.csv", rows);
  options_.model = "mlp:2,2";
  options_.data = (scratch_ / "numbers").string();
  options_.length = 8;
  EXPECT_EQ(error_text([&] { run(); }), "length: is for texts, which a mlp model does not read");
  options_.length = 0;
  options_.truncation = data::Truncation::Head;
  EXPECT_EQ(error_text([&] { run(); }),
            "truncation: is for texts, which a mlp model does not read");
  // Runs of older programs have it in their records.
  options_.truncation.reset();
  options_.out = scratch_ / "run";
  run();
  options_.resumes = true;
  options_.truncation = data::Truncation::Head;
  EXPECT_EQ(error_text([&] { run(); }), "no error");
}

TEST_F(FineTune, DoesNotReplaceWhatItDoesNotKnow) {
  std::filesystem::create_directory(scratch_ / "mine");
  scratch_.write("mine/thesis.txt", "three years");
  options_.out = scratch_ / "mine";
  options_.replaces = true;
  EXPECT_NE(error_text([&] { run(); }), "no error");
  EXPECT_EQ(scratch_.read("mine/thesis.txt"), "three years");
}

}  // namespace
}  // namespace lathe::experiment
