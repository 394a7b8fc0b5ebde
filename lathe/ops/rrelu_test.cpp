#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

TEST(Rrelu, HasTheMeanSlopeInInference) {
  EXPECT_THAT(result_of("rrelu(f32[1,3]) {lower=0.125, upper=0.375}", {f32({1, 3}, {-8, 0, 8})}),
              ElementsAre(-2, 0, 8));
}

TEST(Rrelu, RefusesSlopesThatAreNone) {
  EXPECT_EQ(refusal_of("rrelu(f32[2]) {lower=0.5, upper=0.25}"),
            "node \"y\": rrelu: slopes from 0.5 to 0.25: expected 0 <= lower <= upper <= 1");
}

// The bits of this row are 36631, 7453, 54293, 27688 (dropout_mask_test.cpp); each stands for the
// middle of its share of the slopes.
TEST(RandomRrelu, DrawsASlopeForEachElement) {
  const Tensor x = f32({1, 4}, {-65536, 65536, -65536, -65536});
  const std::vector<Tensor> where = {i32({3}, {7, 5, 9}), i32({1}, {11}), i32({1}, {2})};
  const std::string call =
      "random_rrelu(f32[1,4], f32[1,4], i32[3], i32[1], i32[1]) {lower=0, upper=1, site=3}";
  EXPECT_THAT(result_of(call, {x, x, where[0], where[1], where[2]}),
              ElementsAre(-36631.5f, 65536, -54293.5f, -27688.5f));
  // What a gradient is multiplied by.
  const Tensor dy = f32({1, 4}, {65536, 65536, 65536, 65536});
  EXPECT_THAT(result_of(call, {dy, x, where[0], where[1], where[2]}),
              ElementsAre(36631.5f, 65536, 54293.5f, 27688.5f));
}

}  // namespace
}  // namespace lathe::ops
