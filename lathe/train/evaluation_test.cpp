#include "lathe/train/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/core/interrupt.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

TEST(WilsonInterval, MatchesKnownValues) {
  // Brown, Cai and DasGupta's formula worked out by hand for z = 1.959963984540054.
  const Interval half = wilson_interval(50, 100);
  EXPECT_NEAR(half.low, 0.403832, 1e-6);
  EXPECT_NEAR(half.high, 0.596168, 1e-6);
  const Interval most = wilson_interval(9, 10);
  EXPECT_NEAR(most.low, 0.595850, 1e-6);
  EXPECT_NEAR(most.high, 0.982124, 1e-6);
}

TEST(WilsonInterval, StaysWithinZeroAndOne) {
  EXPECT_EQ(wilson_interval(0, 10).low, 0.0);
  EXPECT_NEAR(wilson_interval(0, 10).high, 0.277533, 1e-6);
  EXPECT_NEAR(wilson_interval(10, 10).low, 0.722467, 1e-6);
  EXPECT_LE(wilson_interval(10, 10).high, 1.0);
  EXPECT_NEAR(wilson_interval(10, 10).high, 1.0, 1e-15);
}

TEST(WilsonInterval, IsEverythingWhenNothingWasSeen) {
  EXPECT_EQ(wilson_interval(0, 0).low, 0.0);
  EXPECT_EQ(wilson_interval(0, 0).high, 1.0);
}

TEST(Softmax, GivesTheSharesOfTheExponentials) {
  const std::vector<float> logits{0.0f, std::log(3.0f)};
  EXPECT_THAT(softmax(logits), testing::ElementsAre(testing::DoubleNear(0.25, 1e-7),
                                                    testing::DoubleNear(0.75, 1e-7)));
}

TEST(Softmax, DoesNotOverflow) {
  EXPECT_THAT(softmax(std::vector<float>{1e38f, 1e38f, -1e38f}), testing::ElementsAre(0.5, 0.5, 0));
}

// Twelve sequences of 2 to 16 tokens with labels 0 and 1.
data::TokenizedDataset small_dataset() {
  data::TokenizedDataset dataset;
  for (int example = 0; example < 12; ++example) {
    const int length = 2 + (example * 5) % 15;
    for (int position = 0; position < length; ++position)
      dataset.ids.push_back(5 + (example * 7 + position * 3) % 15);
    dataset.offsets.push_back(static_cast<std::int64_t>(dataset.ids.size()));
    dataset.labels.push_back(example % 3 == 0 ? 1 : 0);
  }
  return dataset;
}

class Evaluate : public testing::Test {
 protected:
  static TextFeeding feeding(bool is_padded) {
    TextFeeding feeding;
    if (is_padded) feeding.padding_id = 0;
    return feeding;
  }
  Evaluation run(const ClassifierOptions& options, const EvaluationOptions& evaluation = {}) {
    Classifier classifier(model_, options);
    TokenizedTexts texts(small_dataset(), feeding(options.is_padded));
    return evaluate(classifier, texts, 2, evaluation);
  }
  static void expect_same_counts(const Evaluation& got, const Evaluation& expected) {
    EXPECT_EQ(got.accuracy, expected.accuracy);
    EXPECT_EQ(got.accuracy_low, expected.accuracy_low);
    EXPECT_EQ(got.accuracy_high, expected.accuracy_high);
    EXPECT_EQ(got.confusion, expected.confusion);
    EXPECT_EQ(got.examples, expected.examples);
    EXPECT_EQ(got.tokens, expected.tokens);
  }

  io::ScratchDirectory scratch_;
  io::Model model_ = io::load_model(io::write_tiny_bert(scratch_, "m"));
};

TEST_F(Evaluate, CountsEveryExampleOnce) {
  const Evaluation result = run({.execution = {.device = "reference"}});
  EXPECT_EQ(result.examples, 12);
  EXPECT_EQ(result.tokens, static_cast<std::int64_t>(small_dataset().ids.size()));
  ASSERT_EQ(result.confusion.size(), 2u);
  EXPECT_EQ(result.confusion[0][0] + result.confusion[0][1], 8);
  EXPECT_EQ(result.confusion[1][0] + result.confusion[1][1], 4);
  EXPECT_EQ(result.accuracy,
            static_cast<double>(result.confusion[0][0] + result.confusion[1][1]) / 12.0);
  EXPECT_LT(result.accuracy_low, result.accuracy);
  EXPECT_GT(result.accuracy_high, result.accuracy);
}

TEST_F(Evaluate, MeasuresTheMeanCrossEntropyOfEachLogitRow) {
  Classifier classifier(model_, {.execution = {.device = "reference"}});
  const data::TokenizedDataset dataset = small_dataset();
  double expected = 0;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const std::vector<std::int64_t> one{i};
    const Tensor logits = classifier.logits(evaluation_feed(data::make_batch(dataset, one), {}));
    const auto label = static_cast<std::size_t>(dataset.labels[static_cast<std::size_t>(i)]);
    expected -= std::log(softmax(logits.data<float>())[label]) / 12;
  }
  EXPECT_NEAR(run({.execution = {.device = "reference"}}).loss, expected, 1e-12);
}

TEST_F(Evaluate, DoesNotDependOnTheBatches) {
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    ThreadPool pool(1);
    const ClassifierOptions options{.execution = {.device = device, .pool = &pool}};
    const Evaluation whole = run(options);
    for (const std::int64_t size : {1, 2, 5, 12, 100}) {
      const Evaluation batched = run(options, {.batch_examples = size});
      expect_same_counts(batched, whole);
      EXPECT_EQ(batched.loss, whole.loss) << "batches of " << size;
    }
    const Evaluation by_tokens = run(options, {.batch_tokens = 20});
    expect_same_counts(by_tokens, whole);
    EXPECT_EQ(by_tokens.loss, whole.loss);
  }
}

TEST_F(Evaluate, GivesTheSameForPaddedAndPackedBatches) {
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    const Evaluation packed = run({.execution = {.device = device}}, {.batch_examples = 5});
    const Evaluation padded =
        run({.is_padded = true, .execution = {.device = device}}, {.batch_examples = 5});
    expect_same_counts(padded, packed);
    // Logits here are sums of 8 float32 products after a handful of layers of size about 1.
    EXPECT_NEAR(padded.loss, packed.loss, 1e-5);
  }
}

TEST_F(Evaluate, RefusesExamplesWithoutALabel) {
  Classifier classifier(model_, {.execution = {.device = "reference"}});
  for (const std::int32_t label : {-1, 2}) {
    data::TokenizedDataset dataset = small_dataset();
    dataset.labels[4] = label;
    TokenizedTexts texts(dataset, {});
    EXPECT_EQ(io::refusal("", [&] { evaluate(classifier, texts, 2); }),
              label < 0 ? "example 5 has no class for its label, and so no accuracy"
                        : "example 5 has label 2: expected 0 to 1");
  }
}

TEST_F(Evaluate, StopsWhenProgressSaysSo) {
  std::int64_t seen = 0;
  const EvaluationOptions stop_after_two{.batch_examples = 1,
                                         .progress = [&](std::int64_t examples, std::int64_t) {
                                           seen = examples;
                                           return examples < 2;
                                         }};
  EXPECT_THROW(run({.execution = {.device = "reference"}}, stop_after_two), Interrupted);
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace lathe::train
