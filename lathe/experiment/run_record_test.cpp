#include "lathe/experiment/run_record.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::experiment {
namespace {

FineTuneOptions some_options() {
  FineTuneOptions options;
  options.model = "m";
  options.data = "reviews";
  options.trainer.epochs = 5;
  options.trainer.decay = train::Decay::Cosine;
  options.graph.optimizer = train::OptimizerKind::Sgd;
  options.graph.freeze = {"embeddings", "pooler"};
  options.graph.dropout = false;
  options.truncation = data::Truncation::HeadTail;
  options.teacher = "a,b";
  options.teacher_cache = "/cache";
  options.teacher_hashes = {"1", "2"};
  options.graph.distillation.hidden = 2;
  options.graph.distillation.attention = 3;
  options.out = "run";
  return options;
}

TEST(RunRecord, GivesBackEveryOption) {
  const nlohmann::json recorded = to_json(some_options());
  EXPECT_EQ(recorded["schedule"], "cosine");
  EXPECT_EQ(recorded["truncation"], "head+tail");
  FineTuneOptions read;
  read.out = "run";
  take_recorded(read, recorded, {});
  EXPECT_EQ(to_json(read), recorded);
}

TEST(RunRecord, RefusesAnOptionThatSaysOtherwise) {
  FineTuneOptions asked = some_options();
  asked.trainer.epochs = 6;
  const nlohmann::json recorded = to_json(some_options());
  EXPECT_EQ(error_text([&] { take_recorded(asked, recorded, {"epochs"}); }),
            "epochs 6: the run in run was started with 5\n"
            "hint: leave the option out to go on with it, or start another run");
  FineTuneOptions again = some_options();
  EXPECT_NO_THROW(take_recorded(again, recorded, {"epochs"}));
}

TEST(RunRecord, ReadsRunsThatRecordedFlags) {
  FineTuneOptions read;
  read.out = "run";
  take_recorded(read, {{"--epochs", 7}, {"--no-dropout", true}, {"--vocabulary", "v"}}, {});
  EXPECT_EQ(read.trainer.epochs, 7);
  EXPECT_FALSE(read.graph.dropout);
  EXPECT_EQ(read.tokenizer, "v");
}

TEST(RunRecord, NamesAValueOfTheWrongKind) {
  FineTuneOptions read;
  read.out = "run";
  EXPECT_EQ(error_text([&] {
              take_recorded(read, {{"epochs", "many"}}, {});
            }),
            "run/run.json: \"epochs\" is \"many\", which is not a value of its kind");
}

}  // namespace
}  // namespace lathe::experiment
