#include "lathe/train/array_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lathe::train {
namespace {

using testing::ElementsAre;

TEST(ArraySource, FeedsTheRowsThatAreAskedFor) {
  const std::vector<float> values{0, 1, 10, 11, 20, 21};
  ArraySource source("x", {2}, values, {0, 1, 0});
  EXPECT_EQ(source.size(), 3);
  EXPECT_THAT(source.lengths(), ElementsAre(1, 1, 1));

  const std::vector<std::int64_t> chosen{2, 1};
  const ExampleBatch batch = source.evaluation_batch(chosen);
  EXPECT_EQ(batch.feed.at("x").dims(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_THAT(batch.feed.at("x").data<float>(), ElementsAre(20, 21, 10, 11));
  EXPECT_THAT(batch.feed.at("labels").data<std::int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(batch.feed.at("examples").data<std::int32_t>(), ElementsAre(2, 1));
  EXPECT_THAT(batch.examples, ElementsAre(2, 1));
  EXPECT_EQ(batch.tokens, 2);
}

TEST(ArraySource, ColoursGreyImages) {
  const std::vector<float> values{1, 2, 3, 4};
  ArraySource source("x", {3, 1, 2}, values, {0, 1}, 3);
  const std::vector<std::int64_t> chosen{1};
  EXPECT_THAT(source.evaluation_batch(chosen).feed.at("x").data<float>(),
              ElementsAre(3, 4, 3, 4, 3, 4));
}

TEST(ArraySource, AugmentsWhatTrainsWhateverIsInTheBatch) {
  std::vector<float> values(4 * 9);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ArraySource source("x", {1, 3, 3}, values, {0, 1, 0, 1}, 1,
                     ImageTraining{.augmentation = {.flips = true, .shift = 1},
                                   .shape = {1, 3, 3},
                                   .background = {-1},
                                   .seed = 5});
  const std::vector<std::int64_t> all{0, 1, 2, 3}, one{2};
  const ExampleBatch batch = source.training_batch(all, 7), alone = source.training_batch(one, 7);
  const auto third = batch.feed.at("x").data<float>().subspan(18, 9);
  EXPECT_TRUE(std::ranges::equal(third, alone.feed.at("x").data<float>()));
  EXPECT_FALSE(std::ranges::equal(batch.feed.at("x").data<float>(),
                                  source.training_batch(all, 8).feed.at("x").data<float>()));
  EXPECT_TRUE(std::ranges::equal(source.evaluation_batch(all).feed.at("x").data<float>(), values));
}

}  // namespace
}  // namespace lathe::train
