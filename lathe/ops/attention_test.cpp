#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

Tensor random(std::vector<std::int64_t> dims, int seed) {
  Tensor tensor(DType::F32, std::move(dims));
  int n = seed;
  for (float& value : tensor.mutable_data<float>())
    value = std::sin(static_cast<float>(7 * n++)) * 2.0f;
  return tensor;
}

TEST(Attention, WeighsValuesByTheSoftmaxOfScaledScores) {
  // Scores 0 and ln 3 give weights 1/4 and 3/4.
  const float key = std::log(3.0f);
  EXPECT_THAT(result_of("attention(f32[1,1,1], f32[1,2,1], f32[1,2,1]) {heads=1}",
                        {f32({1, 1, 1}, {1}), f32({1, 2, 1}, {0, key}), f32({1, 2, 1}, {4, 8})}),
              ElementsAre(FloatEq(7.0f)));
}

TEST(Attention, DividesScoresByTheRootOfTheHeadSizeUnlessAScaleIsGiven) {
  const float key = 2.0f * std::log(3.0f);  // over a head of 4: divided by 2
  const std::vector<Tensor> inputs = {f32({1, 1, 4}, {1, 0, 0, 0}),
                                      f32({1, 2, 4}, {0, 0, 0, 0, key, 0, 0, 0}),
                                      f32({1, 2, 4}, {4, 0, 0, 0, 8, 0, 0, 0})};
  EXPECT_FLOAT_EQ(result_of("attention(f32[1,1,4], f32[1,2,4], f32[1,2,4]) {heads=1}", inputs)[0],
                  7.0);
  // exp(2 ln 3) = 9, so the weights are 1/10 and 9/10.
  EXPECT_FLOAT_EQ(
      result_of("attention(f32[1,1,4], f32[1,2,4], f32[1,2,4]) {heads=1, scale=1.0}", inputs)[0],
      7.6);
}

TEST(Attention, GivesMaskedKeysNoWeight) {
  const std::vector<float> result =
      result_of("attention(f32[1,1,1], f32[1,3,1], f32[1,3,1], i64[1,3]) {heads=1}",
                {f32({1, 1, 1}, {1}), f32({1, 3, 1}, {0, 99, 0}), f32({1, 3, 1}, {1, 50, 3}),
                 i64({1, 3}, {1, 0, 1})});
  EXPECT_THAT(result, ElementsAre(2.0));
}

TEST(Attention, WeighsAllKeysAlikeWhenAllAreMasked) {
  const std::vector<float> result = result_of(
      "attention(f32[1,1,1], f32[1,2,1], f32[1,2,1], i64[1,2]) {heads=1}",
      {f32({1, 1, 1}, {1}), f32({1, 2, 1}, {0, 9}), f32({1, 2, 1}, {1, 3}), i64({1, 2}, {0, 0})});
  EXPECT_THAT(result, ElementsAre(2.0));
}

TEST(Attention, SeesOnlyTheFirstKeyAtTheFirstPositionWhenCausal) {
  const Tensor zeros(DType::F32, {1, 3, 1});
  EXPECT_THAT(result_of("attention(f32[1,3,1], f32[1,3,1], f32[1,3,1]) {heads=1, causal=true}",
                        {zeros, zeros, f32({1, 3, 1}, {3, 5, 10})}),
              ElementsAre(3.0, 4.0, 6.0));
}

TEST(Attention, GivesPackedSequencesWhatPaddedRowsGive) {
  // Sequences of 2 and 3 tokens; the padding of the first holds numbers that must not matter.
  const Tensor q = random({5, 8}, 1), k = random({5, 8}, 2), v = random({5, 8}, 3);
  const auto padded = [](const Tensor& packed) {
    Tensor result = random({2, 3, 8}, 77);
    const std::span<float> target = result.mutable_data<float>();
    const std::span<const float> source = packed.data<float>();
    std::copy_n(source.begin(), 16, target.begin());
    std::copy_n(source.begin() + 16, 24, target.begin() + 24);
    return result;
  };
  for (const std::string attributes : {"{heads=2}", "{heads=2, causal=true}"}) {
    const std::vector<float> packed_result =
        result_of("attention(f32[T,8], f32[T,8], f32[T,8], none, i32[S+1]) " + attributes,
                  {q, k, v, i32({3}, {0, 2, 5})});
    const std::vector<float> padded_result =
        result_of("attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L]) " + attributes,
                  {padded(q), padded(k), padded(v), i64({2, 3}, {1, 1, 0, 1, 1, 1})});
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(packed_result[i], padded_result[i]) << i;
    for (std::size_t i = 16; i < 40; ++i) EXPECT_EQ(packed_result[i], padded_result[i + 8]) << i;
  }
}

TEST(Attention, SharesKeyHeadsAsIfTheyWereRepeated) {
  const Tensor q = random({1, 3, 8}, 1);  // 4 heads of 2
  const Tensor k = random({1, 3, 4}, 2), v = random({1, 3, 4}, 3);
  const auto repeated = [](const Tensor& shared) {
    Tensor result(DType::F32, {1, 3, 8});
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t i = 0; i < 8; ++i)
        result.mutable_data<float>()[row * 8 + i] =
            shared.data<float>()[row * 4 + i / 4 * 2 + i % 2];
    return result;
  };
  EXPECT_EQ(
      result_of("attention(f32[1,3,8], f32[1,3,4], f32[1,3,4]) {heads=4, kv_heads=2}", {q, k, v}),
      result_of("attention(f32[1,3,8], f32[1,3,8], f32[1,3,8]) {heads=4}",
                {q, repeated(k), repeated(v)}));
}

TEST(Attention, CostsTwoProductsOfQueriesAndKeys) {
  const Example padded = parse_example("attention(f32[B,L,8], f32[B,L,8], f32[B,L,8]) {heads=2}");
  EXPECT_EQ(padded.graph.op(padded.node).flops(padded.graph.call(padded.node)).text(), "32*B*L*L");
  const Example packed =
      parse_example("attention(f32[T,8], f32[T,8], f32[T,8], none, i32[S+1]) {heads=2}");
  EXPECT_EQ(packed.graph.op(packed.node).flops(packed.graph.call(packed.node)).text(), "32*L*T");
}

TEST(Attention, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal_of("attention(f32[B,L,8], f32[B,L,8], f32[B,L,8]) {heads=3}"),
            "node \"y\": attention: the last axis of f32[B,L,8] does not divide into 3 heads");
  EXPECT_EQ(refusal_of("attention(f32[B,L,8], f32[B,L,4], f32[B,L,4]) {heads=2}"),
            "node \"y\": attention: keys f32[B,L,4] must have 2 heads of 4, 8 in all");
  EXPECT_EQ(refusal_of("attention(f32[T,8], f32[T,8], f32[T,8]) {heads=2}"),
            "node \"y\": attention on packed f32[T,8] needs offsets");
  EXPECT_EQ(
      refusal_of("attention(f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,4]) {heads=2}"),
      "node \"y\": attention: mask i64[B,4] does not fit keys f32[B,L,8]: expected shape [B,L]");
  EXPECT_EQ(refusal_of("attention(f32[B,2,8], f32[B,L,8], f32[B,L,8]) {heads=2, causal=true}"),
            "node \"y\": causal attention needs as many keys as queries: 2 and L differ");
  EXPECT_EQ(refusal_of("attention(f32[B,L,8], f32[B,L,8], f32[B,L,8])"),
            "node \"y\": attribute heads is missing: expected an integer");
}

}  // namespace
}  // namespace lathe::ops
