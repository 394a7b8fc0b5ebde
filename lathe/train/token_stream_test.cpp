#include "lathe/train/token_stream.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lathe/data/reviews.h"
#include "lathe/data/tokenized_dataset.h"

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

TEST_F(TokenStreamTest, CanBeLeftBeforeItIsDone) {
  std::vector<std::int64_t> order(100);
  std::iota(order.begin(), order.end(), 0);
  for (int i = 0; i < 20; ++i)
    TokenStream stream(dataset_, tokenizer_, 40, data::Truncation::Head, order);
}

}  // namespace
}  // namespace lathe::train
