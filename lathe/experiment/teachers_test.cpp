#include "lathe/experiment/teachers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/compress/quantizers.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/fine_tune_run.h"
#include "lathe/experiment/quantize.h"
#include "lathe/experiment/testing/tiny_training.h"
#include "lathe/io/safetensors.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TaughtTraining : public TinyTraining {
 protected:
  TaughtTraining() {
    options_.trainer.epochs = 3;
    options_.teacher = io::write_tiny_bert(scratch_, "teacher", other_weights());
    options_.graph.distillation.weight = 0.75;
    callbacks_.progress = [&](const Progress& now) {
      if (now.activity.starts_with("asking") && now.done == now.total) ++asked_;
    };
  }
  // Another model than the student.
  static State other_weights() {
    State weights = io::tiny_weights();
    for (float& value : weights.at("classifier.weight").mutable_data<float>()) value *= -0.5f;
    return weights;
  }
  static void expect_same_weights(const FineTuned& got, const FineTuned& expected) {
    for (const auto& [name, tensor] : expected.model.state)
      EXPECT_TRUE(identical(got.model.state.at(name), tensor)) << name;
  }

  int asked_ = 0;
};

TEST_F(TaughtTraining, LearnsWhatTheTeacherSays) {
  options_.trainer.epochs = 30;
  options_.graph.distillation = {.weight = 1, .temperature = 1};
  const io::Model teacher = io::load_model(options_.teacher);
  const FineTuned result = run();
  // The labels have no weight: the student answers as the teacher does, who is mostly wrong.
  const EnsembleEvaluation one =
      evaluate_ensemble(std::vector{teacher}, {.data = options_.data}, {});
  EXPECT_NE(one.together.accuracy, 1.0);
  EXPECT_EQ(result.test->confusion, one.together.confusion);
}

TEST_F(TaughtTraining, AsksEachTeacherOnceForAllRuns) {
  options_.teacher += "," + io::write_tiny_bert(scratch_, "second");
  options_.teacher_cache = (scratch_ / "shared").string();
  options_.out = scratch_ / "one";
  const FineTuned first = run();
  EXPECT_EQ(asked_, 2);
  options_.out = scratch_ / "two";
  expect_same_weights(run(), first);
  EXPECT_EQ(asked_, 2);
  EXPECT_FALSE(fs::exists(scratch_ / "two/teachers"));

  // Without a directory nothing is kept, and nothing else differs.
  options_.teacher_cache.clear();
  options_.out.clear();
  expect_same_weights(run(), first);
  EXPECT_EQ(asked_, 4);
}

TEST_F(TaughtTraining, OfTheSameTeacherTwiceIsThatOfOne) {
  const FineTuned one = run();
  options_.teacher += "," + options_.teacher;
  expect_same_weights(run(), one);
}

TEST_F(TaughtTraining, GoesOnToTheSameBitsWithoutAskingAgain) {
  options_.out = scratch_ / "whole";
  const FineTuned whole = run();
  options_.out = scratch_ / "parts";
  int steps = 0;
  callbacks_.step = [&](const train::StepReport&) { ++steps; };
  callbacks_.should_stop = [&] { return steps >= 7; };
  EXPECT_EQ(run().training.ending, train::Ending::Interrupted);
  EXPECT_TRUE(fs::exists(scratch_ / "parts/teachers"));

  FineTuneOptions resumed;
  resumed.out = options_.out;
  resumed.resumes = true;
  ASSERT_TRUE(take_up_run(resumed, {}));
  asked_ = 0;
  callbacks_.should_stop = {};
  expect_same_weights(fine_tune(resumed, {}, callbacks_), whole);
  EXPECT_EQ(asked_, 0);
}

TEST_F(TaughtTraining, DoesNotGoOnWithAnotherTeacher) {
  options_.out = scratch_ / "run";
  int steps = 0;
  callbacks_.step = [&](const train::StepReport&) { ++steps; };
  callbacks_.should_stop = [&] { return steps >= 7; };
  run();
  fs::remove_all(options_.teacher);
  io::write_tiny_bert(scratch_, "teacher");
  FineTuneOptions resumed;
  resumed.out = options_.out;
  resumed.resumes = true;
  take_up_run(resumed, {});
  EXPECT_EQ(error_text([&] { fine_tune(resumed, {}); }),
            "teacher " + fs::canonical(options_.teacher).string() +
                ": is no longer the model that the run was started with");
}

// The same model in other words: ids mean other tokens, labels stand the other way round.
TEST_F(TaughtTraining, ReadsAndAnswersInTheTeachersOwnWay) {
  const FineTuned expected = run();
  State weights = other_weights();
  const auto turn_round = [](Tensor& table, std::size_t first) {
    const std::span<float> values = table.mutable_data<float>();
    const auto width = values.size() / static_cast<std::size_t>(table.dim(0));
    for (std::size_t low = first, high = static_cast<std::size_t>(table.dim(0)) - 1; low < high;
         ++low, --high)
      std::swap_ranges(values.begin() + static_cast<std::ptrdiff_t>(low * width),
                       values.begin() + static_cast<std::ptrdiff_t>((low + 1) * width),
                       values.begin() + static_cast<std::ptrdiff_t>(high * width));
  };
  turn_round(weights.at("bert.embeddings.word_embeddings.weight"), 5);
  turn_round(weights.at("classifier.weight"), 0);
  turn_round(weights.at("classifier.bias"), 0);
  std::string config(io::kTinyConfig);
  const std::string names = R"("0": "bad", "1": "good")";
  config.replace(config.find(names), names.size(), R"("0": "good", "1": "bad")");
  options_.teacher = io::write_tiny_bert(scratch_, "other", weights, config);
  std::vector<std::string> tokens = io::tiny_vocabulary();
  std::reverse(tokens.begin() + 5, tokens.end());
  scratch_.write("other/vocab.txt", fmt::format("{}\n", fmt::join(tokens, "\n")));
  expect_same_weights(run(), expected);
}

TEST_F(TaughtTraining, LearnsFromTextsWithoutLabels) {
  scratch_.write("data/unsup.csv", "text\nthe plot\na very fine act\npoor !\n");
  options_.split = "train,unsup";
  options_.validation = 10;
  std::int64_t examples = 0, held_out = 0;
  callbacks_.start = [&](const FineTuneStart& start) {
    examples = start.examples;
    held_out = start.held_out;
  };
  int validations = 0;
  callbacks_.validation = [&](const train::Validation& seen) {
    ++validations;
    EXPECT_EQ(seen.classes->examples, 10);  // all of them labelled
  };
  const FineTuned result = run();
  EXPECT_EQ(examples, 33);
  EXPECT_EQ(held_out, 10);
  EXPECT_EQ(validations, 3);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(result.training.progress.step, 3 * 5);

  options_.teacher.clear();
  options_.graph.distillation = {};
  options_.validation = 0;
  EXPECT_EQ(error_text([&] { run(); }), "example 41 has no label");
}

TEST_F(TaughtTraining, TeachesPathsOfLora) {
  options_.lora = "rank=2,targets=query|value";
  const FineTuned taught = run();
  options_.teacher.clear();
  options_.graph.distillation = {};
  const FineTuned alone = run();
  const std::string path = "bert.encoder.layer.0.attention.self.query.lora_B.weight";
  EXPECT_FALSE(identical(taught.model.state.at(path), alone.model.state.at(path)));
  EXPECT_TRUE(identical(taught.model.state.at("classifier.weight"),
                        alone.model.state.at("classifier.weight")));
}

TEST_F(TaughtTraining, TeachesAQuantizedModel) {
  const io::Model plain = io::load_model(options_.model);
  QuantizeOptions rounding;
  rounding.weights = "int:4,channel";
  const io::Model rounded = quantize(plain, rounding, nullptr, {}).model;
  io::write_checkpoint(scratch_ / "rounded", rounded);
  options_.teacher = options_.model;
  options_.model = (scratch_ / "rounded").string();
  options_.out = scratch_ / "run";
  const FineTuned result = run();
  EXPECT_TRUE(compress::is_quantized(result.model.graph));
  EXPECT_EQ(asked_, 1);
}

TEST_F(TaughtTraining, FollowsTheLayersOfATeacherToTheSameBits) {
  options_.graph.distillation.hidden = 1;
  options_.graph.distillation.attention = 1;
  // A wider and deeper one with the same tokens.
  FineTuneOptions growing = options_;
  growing.model = "bert-tiny";
  growing.tokenizer = options_.model;
  growing.teacher.clear();
  growing.graph.distillation = {};
  growing.trainer.max_steps = 1;
  growing.out = scratch_ / "wide";
  growing.is_tested = false;
  fine_tune(growing, {});
  options_.teacher = growing.out.string();
  // Its heads are larger than the student's: hidden states alone.
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("has heads of 64 features: expected 4"));
  options_.graph.distillation.attention = 0;

  options_.out = scratch_ / "whole";
  const FineTuned whole = run();
  options_.out = scratch_ / "parts";
  int steps = 0;
  callbacks_.step = [&](const train::StepReport&) { ++steps; };
  callbacks_.should_stop = [&] { return steps >= 7; };
  EXPECT_EQ(run().training.ending, train::Ending::Interrupted);
  // The maps go on too; the teacher is no part of a checkpoint.
  const io::SafetensorsFile kept =
      io::SafetensorsFile::open(scratch_ / "parts/checkpoints/step-7/optimizer.safetensors");
  EXPECT_TRUE(kept.has("distillation.map.hidden.0.0"));
  for (const io::TensorInfo& info : kept.tensors())
    EXPECT_FALSE(info.name.starts_with("teacher.")) << info.name;
  FineTuneOptions resumed;
  resumed.out = options_.out;
  resumed.resumes = true;
  ASSERT_TRUE(take_up_run(resumed, {}));
  expect_same_weights(fine_tune(resumed, {}), whole);
}

TEST_F(TaughtTraining, FollowsLayersUnderLoraAndRounding) {
  options_.graph.distillation = {.weight = 0, .hidden = 1, .attention = 1};
  options_.lora = "rank=2,targets=query|value";
  const FineTuned paths = run();
  EXPECT_EQ(asked_, 0);  // the answers have no weight
  options_.lora.clear();
  QuantizeOptions rounding;
  rounding.weights = "int:4,channel";
  rounding.attention_weights = "int:8";
  io::write_checkpoint(scratch_ / "rounded",
                       quantize(io::load_model(options_.model), rounding, nullptr, {}).model);
  options_.model = (scratch_ / "rounded").string();
  options_.out = scratch_ / "run";
  EXPECT_TRUE(compress::is_quantized(run().model.graph));

  // The scales of a rounded teacher are states that could learn, and do not.
  const io::Model rounded =
      io::load_model(options_.model, {.inputs = {"input_ids", "attention_mask", "labels"}});
  train::TrainingGraphOptions graph = options_.graph;
  graph.distillation.teachers = {&rounded};
  State state = rounded.state;
  const train::TrainingGraph training = train::make_training_graph(rounded, graph, state);
  EXPECT_THAT(training.teachers, testing::Contains(testing::HasSubstr("scale")));
  EXPECT_THAT(training.trained, testing::Each(testing::Not(testing::StartsWith("teacher."))));
}

TEST_F(TaughtTraining, FollowsOnlyTeachersThatReadTheSameTokens) {
  options_.graph.distillation.hidden = 1;
  std::vector<std::string> tokens = io::tiny_vocabulary();
  std::swap(tokens[6], tokens[7]);
  scratch_.write("teacher/vocab.txt", fmt::format("{}\n", fmt::join(tokens, "\n")));
  EXPECT_EQ(
      error_text([&] { run(); }),
      "teacher " + options_.teacher +
          ": its token 6 is \"film\": to follow its layers, expected \"the\", as the model's");
}

TEST_F(TaughtTraining, SaysWhatIsWrongWithATeacher) {
  const std::string good = options_.teacher;
  State headless = io::tiny_weights();
  headless.erase("classifier.weight");
  headless.erase("classifier.bias");
  options_.teacher = io::write_tiny_bert(scratch_, "headless", headless);
  EXPECT_EQ(error_text([&] { run(); }),
            "teacher " + options_.teacher +
                ": has no trained classifier: tensor \"classifier.weight\" is missing");
  std::string config(io::kTinyConfig);
  config.replace(config.find("good"), 4, "fine");
  options_.teacher = io::write_tiny_bert(scratch_, "fine", io::tiny_weights(), config);
  EXPECT_EQ(error_text([&] { run(); }),
            "teacher " + options_.teacher + ": has the labels bad, fine: expected bad, good");
  options_.teacher = good + ",,";
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("separated by single commas"));
  options_.teacher.clear();
  EXPECT_EQ(error_text([&] { run(); }), "teacher-weight: needs a teacher");
  options_.graph.distillation = {.hidden = 1};
  EXPECT_EQ(error_text([&] { run(); }), "teacher-hidden: needs a teacher");
  options_.teacher = good;
  options_.graph.distillation = {.weight = 0};
  EXPECT_EQ(error_text([&] { run(); }),
            "teacher-weight 0: nothing would be learned from the teacher");
}

TEST_F(TaughtTraining, DoesNotReplaceItsTeacher) {
  options_.out = options_.teacher;
  options_.replaces = true;
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("which is needed"));
}

}  // namespace
}  // namespace lathe::experiment
