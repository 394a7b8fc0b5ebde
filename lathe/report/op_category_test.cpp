#include "lathe/report/op_category.h"

#include <gtest/gtest.h>

namespace lathe::report {
namespace {

OpCategory category_of(std::string name) {
  return category(Op{.name = std::move(name), .summary = ""});
}

TEST(OpCategory, FollowsTheWordsOfAName) {
  EXPECT_EQ(category_of("linear"), OpCategory::Product);
  EXPECT_EQ(category_of("linear_weight_gradient"), OpCategory::Product);
  EXPECT_EQ(category_of("layer_norm"), OpCategory::Norm);
  EXPECT_EQ(category_of("attention"), OpCategory::Attention);
  EXPECT_EQ(category_of("cross_entropy"), OpCategory::Loss);
  EXPECT_EQ(category_of("packed_positions"), OpCategory::Embedding);
}

TEST(OpCategory, MatchesWholeWordsOnly) {
  EXPECT_EQ(category_of("normal"), OpCategory::Elementwise);
  EXPECT_EQ(category_of("gelu"), OpCategory::Elementwise);
}

TEST(OpCategory, TrustsPropertiesBeforeNames) {
  EXPECT_EQ(category(Op{.name = "noise", .summary = "", .is_identity_in_inference = true}),
            OpCategory::Dropout);
  EXPECT_EQ(category(Op{.name = "attention", .summary = "", .is_source = true}),
            OpCategory::Source);
}

}  // namespace
}  // namespace lathe::report
