#include "lathe/train/loss_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lathe::train
