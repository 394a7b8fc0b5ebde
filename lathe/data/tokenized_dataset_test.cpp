#include "lathe/data/tokenized_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/data/reviews.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

const WordpieceTokenizer& letters() {
  static const WordpieceTokenizer tokenizer =
      WordpieceTokenizer::from_vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c"});
  return tokenizer;
}

TEST(TokenizedDataset, HoldsTheExamplesOneAfterTheOther) {
  const Dataset dataset{{{"a b", 1}, {"", 0}, {"c a b c", 2}}, {"0", "1", "2"}};
  ThreadPool pool(1);
  const TokenizedDataset tokenized = tokenize(dataset, letters(), 5, Truncation::Head, pool);
  EXPECT_THAT(tokenized.ids, ElementsAre(2, 4, 5, 3, 2, 3, 2, 6, 4, 5, 3));
  EXPECT_THAT(tokenized.offsets, ElementsAre(0, 4, 6, 11));
  EXPECT_THAT(tokenized.labels, ElementsAre(1, 0, 2));
  EXPECT_THAT(tokenized.example(2), ElementsAre(2, 6, 4, 5, 3));
  EXPECT_THAT(tokenized.lengths(), ElementsAre(4, 2, 5));
}

TEST(TokenizedDataset, IsEmptyWhenTheDatasetIs) {
  ThreadPool pool(1);
  EXPECT_EQ(tokenize({}, letters(), 8, Truncation::Head, pool), TokenizedDataset{});
}

TEST(TokenizedDataset, DoesNotDependOnTheNumberOfThreads) {
  const Dataset reviews = make_reviews({.num_train = 1000}, "train");
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(reviews_vocabulary());
  ThreadPool one(1), three(3);
  const auto alone = tokenize(reviews, tokenizer, 64, Truncation::HeadTail, one);
  EXPECT_EQ(tokenize(reviews, tokenizer, 64, Truncation::HeadTail, three), alone);
}

TEST(TokenizedDataset, StopsWhenNobodyWantsIt) {
  const Dataset reviews = make_reviews({.num_train = 1000}, "train");
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(reviews_vocabulary());
  ThreadPool pool(2);
  EXPECT_THROW(tokenize(reviews, tokenizer, 64, Truncation::Head, pool, [] { return true; }),
               Interrupted);
}

TEST(TokenizedDataset, RefusesALengthWithoutRoomForAToken) {
  ThreadPool pool(1);
  EXPECT_EQ(error_of([&] { tokenize({}, letters(), 2, Truncation::Head, pool); }),
            "max_length is 2, expected at least 3: [CLS], a token, [SEP]");
}

}  // namespace
}  // namespace lathe::data
