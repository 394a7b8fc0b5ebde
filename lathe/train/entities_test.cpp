#include "lathe/train/entities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::train {
namespace {

using testing::ElementsAre;
using Labels = std::vector<std::string>;

TEST(Entities, GoOnWhileTheirTypeDoes) {
  EXPECT_THAT(find_entities(Labels{"B-PER", "I-PER", "O", "B-LOC", "B-LOC"}),
              ElementsAre(Entity{"PER", 0, 1}, Entity{"LOC", 3, 3}, Entity{"LOC", 4, 4}));
}

// As seqeval counts without a scheme.
TEST(Entities, BeginWhereNothingGoesOn) {
  EXPECT_THAT(find_entities(Labels{"I-PER", "I-LOC", "I-LOC", "O", "I-LOC"}),
              ElementsAre(Entity{"PER", 0, 0}, Entity{"LOC", 1, 2}, Entity{"LOC", 4, 4}));
  EXPECT_THAT(find_entities(Labels{"S-A", "I-A", "E-A", "E-A", "B-A", "I-B"}),
              ElementsAre(Entity{"A", 0, 0}, Entity{"A", 1, 2}, Entity{"A", 3, 3},
                          Entity{"A", 4, 4}, Entity{"B", 5, 5}));
}

TEST(Entities, AreSpelledByLabelsOfPlaceAndType) {
  EXPECT_TRUE(spell_entities(Labels{"O", "B-PER", "I-PER"}));
  EXPECT_FALSE(spell_entities(Labels{"O", "NN"}));
  EXPECT_FALSE(spell_entities(Labels{"0", "1"}));
}

TEST(Entities, CountByPrecisionAndRecall) {
  const EntityCount count{.expected = 4, .predicted = 2, .right = 1};
  EXPECT_DOUBLE_EQ(count.precision(), 0.5);
  EXPECT_DOUBLE_EQ(count.recall(), 0.25);
  EXPECT_DOUBLE_EQ(count.f1(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(EntityCount().f1(), 0);
}

}  // namespace
}  // namespace lathe::train
