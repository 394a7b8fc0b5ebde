#include "lathe/train/soft_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/dataset.h"
#include "lathe/train/array_source.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {
namespace {

TEST(SoftlyLabelled, GivesEachExampleItsOwnRowInTrainingAlone) {
  const std::vector<float> values{1, 2, 3};
  SoftlyLabelled source(
      std::make_unique<ArraySource>("x", std::vector<std::int64_t>{1}, values,
                                    std::vector<std::int32_t>{data::kNoLabel, 1, 0}),
      Tensor::from<float>({3, 2}, {0.1f, 0.9f, 0.2f, 0.8f, 0.3f, 0.7f}));
  EXPECT_EQ(source.size(), 3);
  EXPECT_EQ(source.label(1), 1);
  const std::int64_t some[] = {2, 0};
  const ExampleBatch batch = source.training_batch(some, 4);
  EXPECT_THAT(batch.feed.at("x").data<float>(), testing::ElementsAre(3, 1));
  EXPECT_THAT(batch.feed.at("soft_labels").data<float>(),
              testing::ElementsAre(0.3f, 0.7f, 0.1f, 0.9f));
  EXPECT_THAT(batch.feed.at("labels").data<std::int32_t>(), testing::ElementsAre(0, kIgnoredLabel));
  EXPECT_FALSE(source.evaluation_batch(some).feed.contains("soft_labels"));
}

}  // namespace
}  // namespace lathe::train
