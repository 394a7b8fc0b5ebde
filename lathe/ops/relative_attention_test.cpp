#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/ops/relative_buckets.h"
#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

// Half of 256 buckets are the nearest distances; 511 is 127 steps further, by logarithms.
TEST(RelativeBuckets, ShareRowsByLogarithmsOfFarDistances) {
  const RelativeBuckets buckets{.span = 256, .buckets = 256, .max_distance = 512};
  EXPECT_EQ(buckets.bucket(-3), -3);
  EXPECT_EQ(buckets.bucket(128), 128);
  EXPECT_EQ(buckets.bucket(129), 129);  // 127 log(129/128) / log(511/128) = 0.71
  EXPECT_EQ(buckets.bucket(200), 169);  // 40.9
  EXPECT_EQ(buckets.bucket(-200), -169);
  EXPECT_EQ(buckets.bucket(511), 255);
  EXPECT_EQ(buckets.row(511), 511);
  EXPECT_EQ(buckets.row(-511), 1);
}

TEST(RelativeBuckets, GiveFarDistancesTheLastRow) {
  const RelativeBuckets buckets{.span = 2, .buckets = 0, .max_distance = 0};
  EXPECT_THAT(buckets.rows(4), ElementsAre(0, 0, 1, 2, 3, 3, 3));
}

// Queries and keys are 1, so that a score is what the row of its distance holds: of query 0 the
// rows of 0 and -1, of query 1 those of 1 and 0.
TEST(RelativeAttention, AddsTheRowsOfDistancesToScores) {
  const float three = std::log(3.0f);
  const std::vector<Tensor> inputs = {f32({1, 2, 1}, {1, 1}), f32({1, 2, 1}, {1, 1}),
                                      f32({1, 2, 1}, {4, 8})};
  const Tensor table = f32({4, 1}, {9, three, 0, 0});  // of distances -2, -1, 0 and 1
  for (const bool by_queries : {false, true}) {
    std::vector<Tensor> all = inputs;
    all.push_back(table);
    EXPECT_THAT(
        result_of(by_queries ? "relative_attention(f32[1,2,1], f32[1,2,1], f32[1,2,1], none, none, "
                               "f32[4,1]) {heads=1}"
                             : "relative_attention(f32[1,2,1], f32[1,2,1], f32[1,2,1], none, none, "
                               "none, f32[4,1]) {heads=1}",
                  all),
        ElementsAre(FloatEq(7.0f), FloatEq(6.0f)));
  }
}

}  // namespace
}  // namespace lathe::ops
