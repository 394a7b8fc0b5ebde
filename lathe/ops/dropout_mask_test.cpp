#include "lathe/ops/dropout_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

// Bits computed apart from this code, by Philox 4x32-10 written down from its paper.
constexpr DropoutStream kStream = dropout_stream(7, 5, 9, 3);

TEST(DropoutMask, DrawsTheBitsOfRowsFromSitePositionExampleAndStep) {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t f = 0; f < 12; ++f)
    bits.push_back(dropout_bits(row_dropout_block(kStream, 11, 2, f / 8), f % 8));
  EXPECT_THAT(bits, ElementsAre(36631, 7453, 54293, 27688, 4615, 29522, 62434, 48463,  //
                                59511, 6915, 17616, 60050));
}

TEST(DropoutMask, DrawsTheBitsOfAttentionFromHeadQueryAndKey) {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t j = 0; j < 12; ++j)
    bits.push_back(dropout_bits(attention_dropout_block(kStream, 11, 1, 4, j / 8), j % 8));
  EXPECT_THAT(bits, ElementsAre(34067, 32917, 60341, 59875, 11412, 53998, 41536, 64572,  //
                                32915, 38710, 55206, 15197));
}

TEST(DropoutMask, RoundsTheRateToSixteenBitsAndScalesByTheRoundedOne) {
  EXPECT_EQ(dropout_threshold(0.0), 0u);
  EXPECT_EQ(dropout_scale(0), 1.0);
  EXPECT_EQ(dropout_threshold(0.25), 16384u);
  EXPECT_EQ(dropout_scale(16384), 4.0 / 3.0);
  EXPECT_EQ(dropout_threshold(0.1), 6554u);
  EXPECT_EQ(dropout_scale(6554), 65536.0 / 58982.0);
  EXPECT_EQ(dropout_threshold(0.999999), 65535u);
}

TEST(DropoutMask, TakesNegativeWordsAsTheirBits) {
  EXPECT_EQ(dropout_stream(-1, 1, 2, 0).seed, 0x1FFFFFFFFu);
}

TEST(RandomDropout, DropsWhereTheBitsAreBelowTheRate) {
  // Of the row above, 7453, 4615 and 6915 are below 16384.
  const Tensor x = f32({1, 12}, {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3});
  EXPECT_THAT(result_of("random_dropout(f32[1,12], i32[3], i32[1], i32[1]) {rate=0.25, site=3}",
                        {x, i32({3}, {7, 5, 9}), i32({1}, {11}), i32({1}, {2})}),
              ElementsAre(4, 0, 4, 4, 0, 4, 4, 4, 4, 0, 4, 4));
}

TEST(RandomDropout, TreatsARowAlikeWhateverBatchItIsIn) {
  const Tensor random = i32({3}, {7, 5, 9});
  const std::string two = "random_dropout(f32[2,4], i32[3], i32[2], i32[2]) {rate=0.5, site=3}";
  const Tensor ones = f32({2, 4}, {1, 1, 1, 1, 1, 1, 1, 1});
  const std::vector<float> a = result_of(two, {ones, random, i32({2}, {11, 40}), i32({2}, {2, 6})});
  const std::vector<float> b = result_of(two, {ones, random, i32({2}, {40, 11}), i32({2}, {6, 2})});
  EXPECT_EQ(std::vector<float>(a.begin(), a.begin() + 4),
            std::vector<float>(b.begin() + 4, b.end()));
  EXPECT_EQ(std::vector<float>(a.begin() + 4, a.end()),
            std::vector<float>(b.begin(), b.begin() + 4));
}

TEST(RandomDropout, RefusesRatesAndSitesThatMakeNoMask) {
  EXPECT_EQ(refusal_of("random_dropout(f32[T,4], i32[3], i32[T], i32[T]) {rate=1.0}"),
            "node \"y\": random_dropout rate 1 must be at least 0 and below 1");
  EXPECT_EQ(refusal_of("random_dropout(f32[T,4], i32[3], i32[T], i32[T]) {site=65536}"),
            "node \"y\": random_dropout: site 65536 must be 0 to 65535");
  EXPECT_EQ(refusal_of("random_dropout(f32[T,4], i32[3], i32[S], i32[T])"),
            "node \"y\": random_dropout: examples i32[S] do not fit f32[T,4]: expected shape [T]");
  EXPECT_EQ(refusal_of("random_dropout(f32[T,4], i32[2], i32[T], i32[T])"),
            "node \"y\": random_dropout needs random of shape [3], not i32[2]");
}

// With equal scores every key weighs 1/12, and value 2^j in head 1 tells which keys were kept: all
// but 4 and 11, whose bits (above) are below 16384. The others are scaled by 4/3.
TEST(Attention, DropsWeightsAfterTheSoftmax) {
  Tensor zeros(DType::F32, {12, 2});
  Tensor v(DType::F32, {12, 2});
  for (std::size_t j = 0; j < 12; ++j)
    v.mutable_data<float>()[2 * j + 1] = static_cast<float>(1 << j);
  const std::vector<float> y = result_of(
      "attention(f32[12,2], f32[12,2], f32[12,2], none, i32[2], i32[3], i32[1]) "
      "{heads=2, dropout=0.25, site=3}",
      {zeros, zeros, v, i32({2}, {0, 12}), i32({3}, {7, 5, 9}), i32({1}, {11})});
  EXPECT_FLOAT_EQ(y[2 * 4 + 1], static_cast<float>((4095 - 16 - 2048) / 9.0));
}

TEST(Attention, DropsNothingWithoutRandomNumbers) {
  const std::string operands = "attention(f32[2,1], f32[2,1], f32[2,1], none, i32[2]) ";
  const std::vector<Tensor> inputs = {f32({2, 1}, {1, 2}), f32({2, 1}, {3, 4}), f32({2, 1}, {5, 6}),
                                      i32({2}, {0, 2})};
  EXPECT_EQ(result_of(operands + "{heads=1, dropout=0.9}", inputs),
            result_of(operands + "{heads=1}", inputs));
  EXPECT_EQ(refusal_of("attention(f32[T,1], f32[T,1], f32[T,1], none, i32[S+1], i32[3]) {heads=1}"),
            "node \"y\": attention needs random and examples together to drop weights");
}

}  // namespace
}  // namespace lathe::ops
