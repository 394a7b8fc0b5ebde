#include "lathe/train/masked_tokens.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::train {
namespace {

// [CLS] (2), words 100 to 999, [SEP] (3).
data::Batch sequences(const std::vector<std::int64_t>& examples, int length) {
  data::Batch batch;
  for (const std::int64_t example : examples) {
    batch.ids.push_back(2);
    for (int i = 0; i < length; ++i)
      batch.ids.push_back(static_cast<std::int32_t>(100 + (example * 31 + i * 7) % 900));
    batch.ids.push_back(3);
    batch.offsets.push_back(static_cast<std::int32_t>(batch.ids.size()));
    batch.labels.push_back(0);
    batch.example_indices.push_back(example);
  }
  return batch;
}

const MaskingOptions kOptions{
    .share = 0.15, .mask_id = 4, .vocabulary_size = 1000, .never = {0, 2, 3}, .seed = 7};

TEST(MaskTokens, ChoosesTheShareAndHidesEightOfTen) {
  const data::Batch batch = sequences({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 2000);
  const MaskedBatch masked = mask_tokens(batch, kOptions, 0);
  double num_masked = 0, num_kept = 0;
  for (std::size_t i = 0; i < masked.chosen.size(); ++i) {
    const auto token = static_cast<std::size_t>(masked.chosen[i]);
    EXPECT_EQ(masked.labels[i], batch.ids[token]);
    EXPECT_NE(masked.labels[i], 2);
    EXPECT_NE(masked.labels[i], 3);
    num_masked += masked.ids[token] == 4 ? 1 : 0;
    num_kept += masked.ids[token] == batch.ids[token] ? 1 : 0;
  }
  // Five standard deviations of a binomial count each: the numbers are fixed by the seed.
  const auto expect_share = [](double count, double total, double share) {
    EXPECT_NEAR(count / total, share, 5 * std::sqrt(share * (1 - share) / total));
  };
  const auto num_chosen = static_cast<double>(masked.chosen.size());
  expect_share(num_chosen, 20000, 0.15);
  expect_share(num_masked, num_chosen, 0.8);
  expect_share(num_kept, num_chosen, 0.1);
}

TEST(MaskTokens, LeavesTheOtherTokensAlone) {
  const data::Batch batch = sequences({5}, 500);
  const MaskedBatch masked = mask_tokens(batch, kOptions, 3);
  std::vector<std::int32_t> restored = masked.ids;
  for (std::size_t i = 0; i < masked.chosen.size(); ++i)
    restored[static_cast<std::size_t>(masked.chosen[i])] = masked.labels[i];
  EXPECT_EQ(restored, batch.ids);
}

TEST(MaskTokens, DoesNotDependOnTheBatch) {
  const MaskedBatch alone = mask_tokens(sequences({8}, 50), kOptions, 1);
  const MaskedBatch second = mask_tokens(sequences({3, 8}, 50), kOptions, 1);
  EXPECT_EQ(std::vector(second.ids.begin() + 52, second.ids.end()), alone.ids);
}

TEST(MaskTokens, DiffersFromEpochToEpoch) {
  const data::Batch batch = sequences({8}, 50);
  EXPECT_EQ(mask_tokens(batch, kOptions, 1), mask_tokens(batch, kOptions, 1));
  EXPECT_NE(mask_tokens(batch, kOptions, 1), mask_tokens(batch, kOptions, 2));
}

TEST(MaskTokens, ChoosesAtLeastOneToken) {
  MaskingOptions rare = kOptions;
  rare.share = 1e-9;
  const MaskedBatch masked = mask_tokens(sequences({1}, 3), rare, 0);
  ASSERT_EQ(masked.chosen.size(), 1u);
  EXPECT_GT(masked.chosen[0], 0);
  EXPECT_LT(masked.chosen[0], 4);
}

}  // namespace
}  // namespace lathe::train
