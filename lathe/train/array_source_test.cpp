#include "lathe/train/array_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lathe::train
