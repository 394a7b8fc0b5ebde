#include "lathe/train/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(AnswerAll, GivesTheSameLogitsInAnyBatches) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"));
  data::TokenizedDataset texts;
  for (int example = 0; example < 9; ++example) {
    for (int position = 0; position < 3 + example * 5 % 11; ++position)
      texts.ids.push_back(5 + (example * 7 + position * 3) % 15);
    texts.offsets.push_back(static_cast<std::int64_t>(texts.ids.size()));
    texts.labels.push_back(0);
  }
  Classifier classifier(model, {});
  TokenizedTexts source(texts, {});
  const Answers alone = answer_all(classifier, source, {.batch_examples = 1});
  const Answers together = answer_all(classifier, source, {.batch_tokens = 1000});
  EXPECT_EQ(alone.logits.dims(), (std::vector<std::int64_t>{9, 2}));
  EXPECT_EQ(alone.tokens, texts.offsets.back());
  EXPECT_TRUE(identical(alone.logits, together.logits));
  const std::int64_t last[] = {8};
  const Tensor row = classifier.logits(source.evaluation_batch(last).feed);
  EXPECT_EQ(row.at(0), together.logits.at(16));
  EXPECT_EQ(row.at(1), together.logits.at(17));
}

TEST(MatchColumns, FindsLabelsByName) {
  const std::vector<std::size_t> columns =
      match_columns({"bad", "good", "so-so"}, {"good", "so-so", "bad"});
  EXPECT_THAT(columns, ElementsAre(1, 2, 0));
  const Tensor logits = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(pick_columns(logits, columns).data<float>(), ElementsAre(2, 3, 1, 5, 6, 4));
  // Numbers are the positions of labels that have no names.
  EXPECT_THAT(match_columns({"LABEL_0", "LABEL_1"}, {"0", "1"}), ElementsAre(0, 1));
}

TEST(MatchColumns, RefusesOtherLabels) {
  EXPECT_EQ(error_text([&] {
              match_columns({"bad", "good"}, {"bad", "fine"});
            }),
            "has the labels bad, good: expected bad, fine");
  EXPECT_EQ(error_text([&] {
              match_columns({"bad", "good"}, {"bad"});
            }),
            "has the labels bad, good: expected bad");
}

TEST(MeanProbabilities, IsTheSoftmaxOfOneAndTheMeanOfSeveral) {
  const float three = std::log(3.0f);
  const std::vector<Tensor> one{Tensor::from<float>({1, 2}, {0, three})};
  EXPECT_THAT(mean_probabilities(one).data<float>(), ElementsAre(FloatEq(0.25), FloatEq(0.75)));
  const std::vector<Tensor> two{one[0], Tensor::from<float>({1, 2}, {1000, 0})};
  EXPECT_THAT(mean_probabilities(two).data<float>(), ElementsAre(FloatEq(0.625), FloatEq(0.375)));
  // A temperature of two takes the square root of the odds.
  EXPECT_THAT(
      mean_probabilities(std::vector{Tensor::from<float>({1, 2}, {0, 2 * three})}, 2).data<float>(),
      ElementsAre(FloatEq(0.25), FloatEq(0.75)));
}

TEST(MeanDivergence, IsThatOfProbabilities) {
  const float three = std::log(3.0f);
  const Tensor quarters = Tensor::from<float>({2, 2}, {0, three, 5, 5});
  const Tensor halves = Tensor::from<float>({2, 2}, {1, 1, 7, 7});
  EXPECT_EQ(mean_divergence(quarters, quarters), 0);
  const double of_the_first = 0.25 * std::log(0.5) + 0.75 * std::log(1.5);
  EXPECT_NEAR(mean_divergence(quarters, halves), of_the_first / 2, 1e-7);
  // A shift of a row's logits is no other answer, however large.
  EXPECT_NEAR(mean_divergence(halves, Tensor::from<float>({2, 2}, {-900, -900, 900, 900})), 0,
              1e-12);
}

TEST(EnsembleLogits, AreLogarithmsOfTheMeans) {
  const float three = std::log(3.0f);
  const std::vector<Tensor> two{Tensor::from<float>({1, 2}, {0, three}),
                                Tensor::from<float>({1, 2}, {1000, 0})};
  EXPECT_THAT(ensemble_logits(two).data<float>(),
              ElementsAre(FloatEq(std::log(0.625f)), FloatEq(std::log(0.375f))));
  EXPECT_THAT(ensemble_logits(std::span(two).subspan(1)).data<float>(), ElementsAre(0, -1000));
}

}  // namespace
}  // namespace lathe::train
