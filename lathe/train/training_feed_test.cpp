#include "lathe/train/training_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/wordpiece_tokenizer.h"
#include "lathe/io/testing/refusal.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;

data::Batch two_sequences() {
  return {.ids = {2, 7, 8, 3, 2, 9, 3},
          .offsets = {0, 4, 7},
          .labels = {1, 0},
          .example_indices = {41, 6}};
}

std::vector<std::int32_t> integers(const Tensor& tensor) {
  const auto values = tensor.data<std::int32_t>();
  return {values.begin(), values.end()};
}

TEST(MakeTrainingFeed, HasTheClassOfEachSequence) {
  const Feed feed = make_training_feed(two_sequences(), {.name = "classify", .masking = {}}, 0);
  EXPECT_THAT(integers(feed.at("input_ids")), ElementsAre(2, 7, 8, 3, 2, 9, 3));
  EXPECT_THAT(integers(feed.at("offsets")), ElementsAre(0, 4, 7));
  EXPECT_THAT(integers(feed.at("examples")), ElementsAre(41, 6));
  EXPECT_THAT(integers(feed.at("labels")), ElementsAre(1, 0));
}

TEST(MakeTrainingFeed, SaysWhichTextOfAPairATokenBelongsTo) {
  data::Batch batch = two_sequences();
  batch.first_lengths = {3, 1};
  const Objective objective{.masking = {}, .has_token_types = true};
  EXPECT_THAT(integers(make_training_feed(batch, objective, 0).at("token_type_ids")),
              ElementsAre(0, 0, 0, 1, 0, 1, 1));
  EXPECT_THAT(integers(make_training_feed(two_sequences(), objective, 0).at("token_type_ids")),
              ElementsAre(0, 0, 0, 0, 0, 0, 0));
}

TEST(MakeTrainingFeed, HasTheNextTokenWithinASequence) {
  const Feed feed = make_training_feed(two_sequences(), {.name = "causal-lm", .masking = {}}, 0);
  EXPECT_THAT(integers(feed.at("labels")), ElementsAre(7, 8, 3, -100, 9, 3, -100));
}

TEST(MakeTrainingFeed, RefusesABatchWithoutAnythingToPredict) {
  const data::Batch batch{
      .ids = {7, 8}, .offsets = {0, 1, 1, 2}, .labels = {0, 0, 0}, .example_indices = {4, 5, 6}};
  EXPECT_EQ(
      io::refusal("", [&] { make_training_feed(batch, {.name = "causal-lm", .masking = {}}, 0); }),
      "batch of 3 from example 5 on: no token to predict, expected longer texts or larger batches");
}

TEST(MakeTrainingFeed, HasTheHiddenTokensOfAMaskedModel) {
  const Objective objective{
      .name = "mlm",
      .masking = {.share = 0.5, .mask_id = 4, .vocabulary_size = 10, .never = {2, 3}}};
  const Feed feed = make_training_feed(two_sequences(), objective, 0);
  const std::vector<std::int32_t> masked = integers(feed.at("masked"));
  const std::vector<std::int32_t> labels = integers(feed.at("labels"));
  ASSERT_EQ(masked.size(), labels.size());
  for (std::size_t i = 0; i < masked.size(); ++i)
    EXPECT_EQ(labels[i], two_sequences().ids[static_cast<std::size_t>(masked[i])]);
  const Feed scored = make_validation_feed(two_sequences(), objective);
  EXPECT_EQ(integers(scored.at("labels")).size(), 7u);
  EXPECT_EQ(integers(scored.at("labels"))[0], -100);
}

TEST(SetStepInputs, SplitsTheSeedIntoWords) {
  Feed feed;
  set_step_inputs(feed, 0.5, 0x0000000200000001, 17, true);
  EXPECT_THAT(integers(feed.at("random")), ElementsAre(1, 2, 17));
  set_step_inputs(feed, 0.5, 0x0000000200000001, 17, true, 12);
  EXPECT_THAT(integers(feed.at("random")), ElementsAre(1, 2, 17));
  EXPECT_THAT(integers(feed.at("late_random")), ElementsAre(1, 2, 5));
  EXPECT_EQ(feed.at("learning_rate").at(0), 0.5);
  EXPECT_TRUE(feed.at("learning_rate").dims().empty());
  EXPECT_EQ(feed.at("apply").at(0), 1.0);
}

TEST(MakeObjective, RefusesToMaskWithoutAMask) {
  const auto tokenizer =
      data::WordpieceTokenizer::from_vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"});
  EXPECT_EQ(io::refusal("", [&] { make_objective("mlm", tokenizer, 0.15, 0); }),
            "the vocabulary has no [MASK], which the objective mlm needs");
  EXPECT_EQ(io::refusal("", [&] { make_objective("mlp", tokenizer, 0.15, 0); }),
            "unknown objective \"mlp\"; known: causal-lm, classify, mlm, multi-label, regression, "
            "tokens");
}

}  // namespace
}  // namespace lathe::train
