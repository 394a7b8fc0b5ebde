#include "lathe/experiment/pipeline/compress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/testing/opinions.h"
#include "lathe/io/model_size.h"

namespace lathe::experiment {
namespace {

using testing::HasSubstr;

class Compress : public testing::Test {
 protected:
  Compress() {
    options_.data = write_opinions(scratch_, "data");
    options_.validation = 8;
    FineTuneOptions training;
    training.model = io::write_tiny_bert(scratch_, "m");
    training.data = options_.data;
    training.trainer.epochs = 30;
    training.trainer.cycles = 1;
    training.trainer.batch_examples = 8;
    training.trainer.learning_rate = 1e-2;
    training.out = scratch_ / "float";
    fine_tune(training, {});
    options_.model = training.out.string();
    options_.out = scratch_ / "small";
  }
  CompressResult run() { return compress_model(options_, {}, callbacks_); }
  double accuracy(const std::filesystem::path& model) const {
    return evaluate_on(io::load_model(model.string()), {.data = options_.data}, {})
        .classes->accuracy;
  }

  io::ScratchDirectory scratch_;
  CompressOptions options_;
  Callbacks callbacks_;
};

TEST_F(Compress, TakesAModelThroughItsStages) {
  options_.stages = {{.kind = "prune", .settings = {{"sparsity", 0.5}}},
                     {.kind = "fine-tune", .settings = {{"epochs", 4}, {"lr", 1e-3}}},
                     {.kind = "quantize", .settings = {{"weights", "int:8,channel"}}},
                     {.kind = "qat", .settings = {{"epochs", 2}, {"lr", 1e-3}}}};
  const CompressResult result = run();
  ASSERT_EQ(result.stages.size(), 5u);
  EXPECT_EQ(result.stages[0].sparsity, 0.0);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_GT(result.stages[i].sparsity, 0.1) << i;
  EXPECT_EQ(result.stages[1].sparsity, result.stages[4].sparsity);
  EXPECT_LT(result.stages[4].weight_bits, result.stages[2].weight_bits);
  for (const StageResult& stage : result.stages)
    EXPECT_EQ(stage.parameters, result.stages[0].parameters) << stage.stage;
  // The directory is the model, and the size is that of its files.
  EXPECT_EQ(io::model_size(options_.out).bytes(), result.stages[4].bytes);
  // Coded, it is smaller than what the stage itself left.
  EXPECT_LT(result.stages[4].bytes, io::model_size(options_.out / "stages" / "4-qat").bytes());
  EXPECT_EQ(accuracy(options_.out), result.test_accuracy);
  EXPECT_TRUE(std::filesystem::exists(options_.out / "report.html"));
}

TEST_F(Compress, GoesOnWithTheStageItWasIn) {
  options_.stages = {
      {.kind = "quantize", .settings = {{"weights", "int:4,channel"}}},
      {.kind = "distil", .settings = {{"epochs", 6}, {"lr", 1e-3}, {"batch-size", 8}}}};
  options_.out = scratch_ / "whole";
  const CompressResult whole = run();

  options_.out = scratch_ / "parts";
  int trained = 0;
  callbacks_.progress = [&](const Progress& now) {
    if (now.unit == "steps") ++trained;
  };
  callbacks_.should_stop = [&] { return trained >= 7; };
  EXPECT_THROW(run(), Interrupted);
  callbacks_ = {};
  options_.resumes = true;
  const CompressResult parts = run();
  EXPECT_EQ(parts.test_accuracy, whole.test_accuracy);
  const io::Model a = io::load_model((scratch_ / "whole").string());
  const io::Model b = io::load_model((scratch_ / "parts").string());
  for (const auto& [name, tensor] : a.state)
    EXPECT_TRUE(identical(b.state.at(name), tensor)) << name;

  options_.stages[1].settings["epochs"] = 7;
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("was started with"));
}

TEST_F(Compress, ReachesASize) {
  FineTuneOptions training;
  training.model = "bert-tiny";
  training.data = options_.data = "reviews:train=48,test=16";
  training.trainer.max_steps = 1;
  training.out = scratch_ / "larger";
  fine_tune(training, {});
  options_.model = training.out.string();
  options_.target.size = "9x";
  const CompressResult result = run();
  EXPECT_LE(9 * io::model_size(options_.out).bytes(), result.stages[0].bytes);
  EXPECT_EQ(result.stages.back().stage, "distil");
}

TEST_F(Compress, FactorisesAndForgetsTokens) {
  options_.stages = {{.kind = "vocabulary", .settings = {{"min-count", 2}}},
                     {.kind = "low-rank", .settings = {{"targets", {"word"}}, {"rank", 4}}},
                     {.kind = "fine-tune", .settings = {{"epochs", 2}, {"lr", 1e-3}}}};
  std::vector<std::string> lines;
  callbacks_.notice = [&](const std::string& line) { lines.push_back(line); };
  const CompressResult result = run();
  EXPECT_LT(result.stages[1].parameters, result.stages[0].parameters);
  EXPECT_LT(result.stages[2].parameters, result.stages[1].parameters);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("tokens stay")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("unknown now")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("at rank 4")));
  EXPECT_EQ(accuracy(options_.out), result.test_accuracy);
}

TEST_F(Compress, MeasuresAStageThatWasWholeWhenItWasInterrupted) {
  options_.stages = {{.kind = "quantize", .settings = {{"weights", "int:4,channel"}}}};
  bool measures = false;
  callbacks_.progress = [&](const Progress& now) {
    measures = measures || now.activity == "measuring quantize";
  };
  callbacks_.should_stop = [&] { return measures; };
  EXPECT_THROW(run(), Interrupted);
  callbacks_ = {};
  options_.resumes = true;
  const CompressResult result = run();
  ASSERT_EQ(result.stages.size(), 2u);
  EXPECT_TRUE(result.stages[1].accuracy.has_value());
  EXPECT_EQ(result.measured_on, "8 rows held out of train");
  // And once more, with nothing left to do.
  EXPECT_EQ(run().measured_on, result.measured_on);
}

TEST_F(Compress, SaysWhatSizeCanBeMetBeforeItTrains) {
  options_.target.size = "1000x";
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("the smallest that can be met is"));
  EXPECT_FALSE(std::filesystem::exists(options_.out));
}

TEST_F(Compress, RefusesWhatItCannotUnderstand) {
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("either the stages"));
  options_.target = {.size = "2x", .max_loss = 1};
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("one of the two"));
  options_.target = {};
  options_.stages = {{.kind = "qat"}};
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("is not quantized"));
  options_.stages = {{.kind = "pruning"}};
  EXPECT_THAT(error_text([&] { run(); }), HasSubstr("prune"));
}

}  // namespace
}  // namespace lathe::experiment
