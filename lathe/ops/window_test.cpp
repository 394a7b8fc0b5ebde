#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

Tensor one_to_nine() {
  return f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST(Conv2d, SumsTheNeighboursOfEachPixelWithPadding) {
  const Tensor ones = f32({1, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(result_of("conv2d(f32[1,1,3,3], f32[1,1,3,3], f32[1]) {pads=[1,1,1,1]}",
                        {one_to_nine(), ones, f32({1}, {100})}),
              ElementsAre(112, 121, 116, 127, 145, 133, 124, 139, 128));
}

TEST(Conv2d, DoesNotFlipTheFilter) {
  EXPECT_THAT(result_of("conv2d(f32[1,1,3,3], f32[1,1,2,2])",
                        {one_to_nine(), f32({1, 1, 2, 2}, {1, 0, 0, 10})}),
              ElementsAre(51, 62, 84, 95));
}

TEST(Conv2d, StepsAndReachesAsFarAsStridesAndDilationsSay) {
  const Tensor corner = f32({1, 1, 2, 2}, {1, 0, 0, 10});
  EXPECT_THAT(
      result_of("conv2d(f32[1,1,3,3], f32[1,1,2,2]) {dilations=[2,2]}", {one_to_nine(), corner}),
      ElementsAre(91));
  EXPECT_THAT(result_of("conv2d(f32[1,1,3,3], f32[1,1,1,1]) {strides=[2,1]}",
                        {one_to_nine(), f32({1, 1, 1, 1}, {1})}),
              ElementsAre(1, 2, 3, 7, 8, 9));
}

TEST(Conv2d, KeepsGroupsApart) {
  EXPECT_THAT(result_of("conv2d(f32[1,2,1,1], f32[4,1,1,1]) {groups=2}",
                        {f32({1, 2, 1, 1}, {1, 10}), f32({4, 1, 1, 1}, {2, 3, 4, 5})}),
              ElementsAre(2, 3, 40, 50));
}

TEST(Conv2d, PadsTopLeftBottomRight) {
  EXPECT_EQ(type_of("conv2d(f32[B,1,5,7], f32[2,1,3,3]) {pads=[1,0,2,0]}"), "f32[B,2,6,5]");
}

TEST(Conv2d, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal_of("conv2d(f32[B,4,5,5], f32[2,3,3,3])"),
            "node \"y\": cannot convolve f32[B,4,5,5] with weight f32[2,3,3,3]: 4 channels a group "
            "and 3 differ");
  EXPECT_EQ(refusal_of("conv2d(f32[B,1,L,5], f32[1,1,3,3])"),
            "node \"y\": conv2d needs a constant in place of size L of f32[B,1,L,5]");
  EXPECT_EQ(refusal_of("conv2d(f32[B,1,2,5], f32[1,1,3,3])"),
            "node \"y\": conv2d: f32[B,1,2,5] is smaller than the 3x3 window");
  EXPECT_EQ(refusal_of("conv2d(f32[B,1,9223372036854775807,5], f32[1,1,3,3])"),
            "node \"y\": conv2d: f32[B,1,9223372036854775807,5]: an axis may be at most "
            "1099511627776 long");
  EXPECT_EQ(refusal_of("conv2d(f32[B,1,5,5], f32[1,1,3,3]) {strides=[0,1]}"),
            "node \"y\": conv2d: strides=[0,1] must be numbers from 1 to 16777216");
  EXPECT_EQ(refusal_of("conv2d(f32[B,1,5,5], f32[1,1,3,3]) {pads=[1,1]}"),
            "node \"y\": conv2d: pads=[1,1] must have 4 numbers");
}

TEST(MaxPool2d, TakesTheLargestElementOfEachWindow) {
  EXPECT_THAT(result_of("max_pool2d(f32[1,1,3,3]) {kernel=[2,2], strides=[1,1]}", {one_to_nine()}),
              ElementsAre(5, 6, 8, 9));
}

TEST(MaxPool2d, NeverTakesPadding) {
  EXPECT_THAT(result_of("max_pool2d(f32[1,1,1,1]) {kernel=[2,2], pads=[1,1,0,0]}",
                        {f32({1, 1, 1, 1}, {-3})}),
              ElementsAre(-3));
  EXPECT_EQ(refusal_of("max_pool2d(f32[1,1,4,4]) {kernel=[2,2], pads=[2,0,0,0]}"),
            "node \"y\": max_pool2d: padding 2 must be smaller than the 2x2 kernel");
}

TEST(AvgPool2d, CountsPaddingAsZerosUnlessToldNotTo) {
  const Tensor x = f32({1, 1, 2, 2}, {4, 8, 12, 16});
  EXPECT_THAT(result_of("avg_pool2d(f32[1,1,2,2]) {kernel=[2,2]}", {x}), ElementsAre(10));
  EXPECT_THAT(result_of("avg_pool2d(f32[1,1,2,2]) {kernel=[2,2], pads=[1,1,0,0]}", {x}),
              ElementsAre(1));
  EXPECT_THAT(result_of("avg_pool2d(f32[1,1,2,2]) "
                        "{kernel=[2,2], pads=[1,1,0,0], count_include_pad=false}",
                        {x}),
              ElementsAre(4));
}

}  // namespace
}  // namespace lathe::ops
