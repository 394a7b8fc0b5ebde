#include "lathe/data/batching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lathe/data/counter_random.h"
#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

std::vector<std::vector<std::int64_t>> batches_of(const BatchPlan& plan) {
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t b = 0; b < plan.num_batches(); ++b)
    batches.emplace_back(plan.examples(b).begin(), plan.examples(b).end());
  return batches;
}

const std::vector<std::int64_t> kLengths = {5, 9, 3, 7, 2, 8};

TEST(BatchPlan, CutsByCount) {
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 4})),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5)));
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 4, .drop_last = true})),
              ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 3, .drop_last = true})),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
}

TEST(BatchPlan, CutsByTokens) {
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 0, .max_tokens = 14})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5)));
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 2, .max_tokens = 14})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
  EXPECT_THAT(batches_of(plan_batches(std::vector<std::int64_t>{3, 99, 3},
                                      {.max_examples = 0, .max_tokens = 10})),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)))
      << "an example that is too long stands alone";
}

TEST(BatchPlan, SortsByLengthWithinWindows) {
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 2, .sort_window = 100})),
              ElementsAre(ElementsAre(4, 2), ElementsAre(0, 3), ElementsAre(5, 1)));
  EXPECT_THAT(batches_of(plan_batches(kLengths, {.max_examples = 3, .sort_window = 3})),
              ElementsAre(ElementsAre(2, 0, 1), ElementsAre(4, 3, 5)));
}

TEST(BatchPlan, HasNoBatchesWithoutExamples) {
  EXPECT_EQ(plan_batches({}, {}).num_batches(), 0);
  EXPECT_EQ(plan_batches({}, {.drop_last = true}).num_batches(), 0);
}

TEST(BatchPlan, IsAFunctionOfSeedAndEpoch) {
  const std::vector<std::int64_t> lengths(100, 4);
  const auto order = [&](std::uint64_t seed, std::int64_t epoch) {
    return plan_batches(
               lengths,
               {.order = BatchOrder::Shuffled, .seed = seed, .epoch = epoch, .sort_window = 20})
        .order;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_THAT(
      plan_batches(std::vector<std::int64_t>(6, 1), {.order = BatchOrder::Shuffled, .seed = 1})
          .order,
      ElementsAre(2, 3, 5, 1, 0, 4))
      << "the same on every machine";
}

TEST(BatchPlan, CoversEachExampleOnceAndKeepsItsLimits) {
  CounterRandom random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> lengths(random.below(70));
    for (std::int64_t& length : lengths) length = static_cast<std::int64_t>(2 + random.below(30));
    BatchOptions options{.max_examples = static_cast<std::int64_t>(random.below(9)),
                         .max_tokens = static_cast<std::int64_t>(random.below(100)),
                         .order = random.below(2) ? BatchOrder::Shuffled : BatchOrder::Sequential,
                         .seed = random.next(),
                         .sort_window = static_cast<std::int64_t>(random.below(40))};
    if (options.max_examples == 0 && options.max_tokens == 0) options.max_tokens = 50;
    const BatchPlan plan = plan_batches(lengths, options);

    std::vector<std::int64_t> covered;
    for (const auto& batch : batches_of(plan)) {
      ASSERT_FALSE(batch.empty());
      std::int64_t num_tokens = 0;
      for (const std::int64_t example : batch)
        num_tokens += lengths[static_cast<std::size_t>(example)];
      if (options.max_examples > 0) {
        EXPECT_LE(static_cast<std::int64_t>(batch.size()), options.max_examples);
      }
      if (options.max_tokens > 0 && batch.size() > 1) {
        EXPECT_LE(num_tokens, options.max_tokens);
      }
      covered.insert(covered.end(), batch.begin(), batch.end());
    }
    std::sort(covered.begin(), covered.end());
    std::vector<std::int64_t> all(lengths.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    ASSERT_EQ(covered, all) << "round " << round;
  }
}

TEST(BatchPlan, RefusesBatchesWithoutALimit) {
  EXPECT_EQ(error_of([] { plan_batches({}, {.max_examples = 0}); }),
            "a batch needs a largest number of examples or of tokens");
  EXPECT_EQ(error_of([] { plan_batches({}, {.max_examples = -1}); }),
            "a batch of -1 examples and 0 tokens, sorted 0 at a time: expected no negative number");
}

TEST(Batch, GathersExamplesInTheOrderAskedFor) {
  const TokenizedDataset dataset{{2, 7, 3, 2, 3, 2, 8, 9, 3}, {0, 3, 5, 9}, {1, 0, 1}};
  const Batch batch = make_batch(dataset, std::vector<std::int64_t>{2, 1});
  EXPECT_THAT(batch.ids, ElementsAre(2, 8, 9, 3, 2, 3));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 4, 6));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.example_indices, ElementsAre(2, 1));
}

TEST(Batch, PadsToTheLongestSequence) {
  const Batch batch{{2, 8, 3, 2, 3}, {0, 3, 5}, {1, 0}, {0, 1}};
  EXPECT_EQ(to_padded(batch, 0), (PaddedBatch{2, 3, {2, 8, 3, 2, 3, 0}, {1, 1, 1, 1, 1, 0}}));
  EXPECT_EQ(to_padded(batch, 9, 4),
            (PaddedBatch{2, 4, {2, 8, 3, 9, 2, 3, 9, 9}, {1, 1, 1, 0, 1, 1, 0, 0}}));
  EXPECT_EQ(to_padded(Batch{}, 0), PaddedBatch{});
}

}  // namespace
}  // namespace lathe::data
