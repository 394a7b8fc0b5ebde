#include "lathe/train/loss_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/make_source.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;

data::Dataset three_texts() {
  data::Dataset dataset;
  for (const char* const text : {"a a", "a a a a", "a a a a a a"})
    dataset.examples.push_back({.text = text, .label = 0});
  return dataset;
}

TEST(EvaluateLoss, TakesBatchesOfTheSizeThatIsAskedFor) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "causal-lm"});
  const data::Dataset dataset = three_texts();
  const auto source = make_evaluation_source(model, dataset, {.objective = "causal-lm"}, nullptr);
  std::vector<std::int64_t> done;
  const auto loss_of = [&](EvaluationOptions options) {
    done.clear();
    options.progress = [&](std::int64_t examples, std::int64_t) {
      done.push_back(examples);
      return true;
    };
    return evaluate_loss(model, *source, {}, options);
  };
  const LossEvaluation together = loss_of({});
  EXPECT_THAT(done, ElementsAre(3));
  const LossEvaluation alone = loss_of({.batch_examples = 1});
  EXPECT_THAT(done, ElementsAre(1, 2, 3));
  EXPECT_EQ(alone.predictions, together.predictions);
  EXPECT_NEAR(alone.loss, together.loss, 1e-5);
  loss_of({.batch_examples = 2});
  EXPECT_THAT(done, ElementsAre(2, 3));
  loss_of({.batch_tokens = 11});  // 4 + 6, then 8
  EXPECT_THAT(done, ElementsAre(2, 3));
}

// The texts of another source, without a token that is predicted.
class OneTokenEach final : public ExampleSource {
 public:
  explicit OneTokenEach(ExampleSource& source) : source_(source) {}
  std::int64_t size() const override { return source_.size(); }
  std::vector<std::int64_t> lengths() override { return source_.lengths(); }
  std::int32_t label(std::int64_t example) const override { return source_.label(example); }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t) override {
    return evaluation_batch(examples);
  }
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override {
    ExampleBatch batch = source_.evaluation_batch(examples);
    std::ranges::fill(batch.feed.at("labels").mutable_data<std::int32_t>(), data::kIgnoredLabel);
    return batch;
  }

 private:
  ExampleSource& source_;
};

TEST(EvaluateLoss, RefusesTextsThatLeaveNothingToPredict) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "causal-lm"});
  const data::Dataset dataset = three_texts();
  const auto source = make_evaluation_source(model, dataset, {.objective = "causal-lm"}, nullptr);
  OneTokenEach short_texts(*source);
  EXPECT_EQ(error_text([&] { evaluate_loss(model, short_texts, {}); }),
            "3 examples: no token to predict, expected longer texts");
}

}  // namespace
}  // namespace lathe::train
