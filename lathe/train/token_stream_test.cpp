#include "lathe/train/token_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "lathe/data/reviews.h"
#include "lathe/data/tokenized_dataset.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::train {
namespace {

class TokenStreamTest : public testing::Test {
 protected:
  data::Dataset dataset_ = data::make_reviews({.num_train = 100}, "train");
  data::WordpieceTokenizer tokenizer_ =
      data::WordpieceTokenizer::from_vocabulary(data::reviews_vocabulary());
};

TEST_F(TokenStreamTest, GivesWhatTokenizingEverythingGives) {
  std::vector<std::int64_t> order(100);
  for (std::size_t i = 0; i < 100; ++i) order[i] = static_cast<std::int64_t>(i * 37 % 100);
  TokenStream stream(dataset_, tokenizer_, 40, data::Truncation::HeadTail, order);
  ThreadPool pool(1);
  const data::TokenizedDataset whole =
      data::tokenize(dataset_, tokenizer_, 40, data::Truncation::HeadTail, pool);
  for (std::size_t begin = 0; begin < 100; begin += 20) {
    const auto examples = std::span<const std::int64_t>(order).subspan(begin, 20);
    EXPECT_EQ(stream.batch(examples), data::make_batch(whole, examples));
  }
  EXPECT_EQ(stream.lengths(), whole.lengths());
}

// A thread that went on would read texts that may be gone by then.
TEST_F(TokenStreamTest, LeavesNoThreadBehindWhenItIsLeftBeforeItIsDone) {
  const auto num_threads = [] {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::distance(begin(threads), end(threads));
  };
  std::vector<std::int64_t> order(100);
  std::iota(order.begin(), order.end(), 0);
  const auto first = std::span<const std::int64_t>(order).first(1);
  const auto before = num_threads();
  for (int i = 0; i < 20; ++i) {
    TokenStream stream(dataset_, tokenizer_, 40, data::Truncation::Head, order);
    const data::Batch batch = stream.batch(first);
    EXPECT_EQ(batch.labels, std::vector{dataset_.examples[0].label});
    EXPECT_GT(batch.num_tokens(), 2);
  }
  EXPECT_EQ(num_threads(), before);
}

}  // namespace
}  // namespace lathe::train
