#include "lathe/ops/attention_weight_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

// One of each way to have scales: given, none, of a row's largest, of a row's mean, of blocks.
const std::vector<std::string> kFormats = {
    "int:4",           "int:3,asymmetric", "int:4,dynamic", "int:4,asymmetric,dynamic",
    "mxint:4,block=2", "bfp:4,block=2",    "fixed:4,3",     "minifloat:e2m1",
    "binary:scaled",   "ternary",          "log:4,bias=5"};

std::vector<float> rounded(const char* format, std::vector<float> weights,
                           const std::vector<std::uint8_t>& keep = {}) {
  AttentionWeightFormat(format).round(weights, keep.empty() ? nullptr : keep.data(), best_isa());
  return weights;
}

// Two queries of a head of one feature: scores 0 and ln 3, and 0 and 0.
std::vector<Tensor> two_queries() {
  return {f32({1, 2, 1}, {1, 0}), f32({1, 2, 1}, {0, std::log(3.0f)}), f32({1, 2, 1}, {3, 6})};
}

TEST(AttentionWeightFormat, PutsTheRangeFromZeroToOneOnAGivenScale) {
  // Three steps from 0 to 1, since the zero point leaves no code to negative numbers.
  EXPECT_THAT(rounded("int:2,asymmetric", {0, 0.25f, 0.75f, 1}),
              ElementsAre(0, FloatEq(1 / 3.0f), FloatEq(2 / 3.0f), 1));
  // Seven of the fifteen codes are positive.
  EXPECT_THAT(rounded("int:4", {0, 0.6f, 0.3f, 1}),
              ElementsAre(0, FloatEq(4 / 7.0f), FloatEq(2 / 7.0f), 1));
}

TEST(AttentionWeightFormat, StartsBlocksAtTheFirstKeptKeyAndLeavesMaskedOnesZero) {
  const std::vector<float> alone = rounded("mxint:3,block=2", {0.5f, 0.1f, 0.25f, 0.15f});
  EXPECT_EQ(rounded("mxint:3,block=2", {0, 0.5f, 0.1f, 0, 0.25f, 0.15f}, {0, 1, 1, 0, 1, 1}),
            (std::vector<float>{0, alone[0], alone[1], 0, alone[2], alone[3]}));
  // A sign has no 0 of its own.
  EXPECT_THAT(rounded("binary:scaled", {0.75f, 0.25f, 0}, {1, 1, 0}), ElementsAre(0.5, 0.5, 0));
}

TEST(AttentionWeightFormat, RoundsARowThatKeepsNoKeyWhole) {
  EXPECT_THAT(rounded("int:2,asymmetric", {0.5f, 0.5f}, {0, 0}),
              ElementsAre(FloatEq(2 / 3.0f), FloatEq(2 / 3.0f)));
}

TEST(AttentionWeightFormat, IsTheDefinitionsBitForBit) {
  const std::vector<float> weights = {0.3f, 0, 0.05f, 0.25f, 0.0f, 0.125f, 0.275f};
  const std::vector<std::uint8_t> keep = {1, 0, 1, 1, 0, 1, 1};
  for (const std::string& text : kFormats) {
    SCOPED_TRACE(text);
    const AttentionWeightFormat format(text);
    std::vector<double> expected(weights.begin(), weights.end());
    format.round_by_definition(expected, keep);
    for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
      if (!is_supported(isa)) continue;
      std::vector<float> actual = weights;
      format.round(actual, keep.data(), isa);
      EXPECT_EQ(std::vector<double>(actual.begin(), actual.end()), expected) << name(isa);
    }
  }
}

// What a query that is no number asks for is none either, in formats without a code for it too.
TEST(AttentionWeightFormat, KeepsNan) {
  for (const std::string& text : kFormats) {
    SCOPED_TRACE(text);
    std::vector<double> weights(4, std::nan(""));
    AttentionWeightFormat(text).round_by_definition(weights, std::vector<std::uint8_t>{1, 0, 1, 1});
    EXPECT_TRUE(std::isnan(weights[0]) && std::isnan(weights[2]) && std::isnan(weights[3]));
    EXPECT_TRUE(std::isnan(rounded(text.c_str(), {NAN, 0.5f})[0]));
  }
}

TEST(RoundedAttention, MultipliesValuesByRoundedWeights) {
  // Weights 1/4 and 3/4 become 1/3 and 2/3; those of 1/2 lie in the middle and go to the even 2/3.
  EXPECT_THAT(result_of("attention(f32[1,2,1], f32[1,2,1], f32[1,2,1]) "
                        "{heads=1, weight_format=\"int:2,asymmetric\"}",
                        two_queries()),
              ElementsAre(FloatEq(5.0f), FloatEq(6.0f)));
}

TEST(RoundedAttention, PassesGradientsStraightThrough) {
  std::vector<Tensor> inputs = two_queries();
  inputs.insert(inputs.begin(), f32({1, 2, 1}, {1, 10}));
  const std::vector<Tensor> gradients = evaluate(
      "attention_gradient(f32[1,2,1], f32[1,2,1], f32[1,2,1], f32[1,2,1]) "
      "{heads=1, weight_format=\"int:2,asymmetric\"}",
      inputs);
  // Of the first query's scores, with weights 1/4 and 3/4 whose mean value is 5.25: -+ 0.5625. Of
  // the second's, with 1/2 and 1/2: -+ 7.5; its q is 0.
  const float ln3 = std::log(3.0f);
  EXPECT_THAT(gradients[0].data<float>(), ElementsAre(FloatEq(0.5625f * ln3), FloatEq(7.5f * ln3)));
  EXPECT_THAT(gradients[1].data<float>(), ElementsAre(FloatEq(-0.5625f), FloatEq(0.5625f)));
  // dv sees the rounded weights: 1/3 and 2/3, and 2/3 twice.
  EXPECT_THAT(gradients[2].data<float>(), ElementsAre(FloatEq(7.0f), FloatEq(22.0f / 3)));
}

TEST(RoundedAttention, DropsWeightsAfterRounding) {
  const std::vector<Tensor> inputs = {
      f32({4, 1}, {1, 0, 2, 3}), f32({4, 1}, {0, std::log(3.0f), 1, 2}),
      f32({4, 1}, {1, 1, 1, 1}), i32({2}, {0, 4}),
      i32({3}, {1, 2, 3}),       i32({1}, {5})};
  const auto sums = [&](const std::string& format) {
    return result_of(
        "attention(f32[4,1], f32[4,1], f32[4,1], none, i32[2], i32[3], i32[1]) "
        "{heads=1, dropout=0.5, site=7, weight_format=\"" +
            format + "\"}",
        inputs);
  };
  // Every kept weight is 1/4 times the factor 2 where signs are all there is.
  const std::vector<float> kept = sums("binary:scaled");
  for (const float sum : kept) EXPECT_EQ(sum * 2, std::round(sum * 2));
  EXPECT_NE(kept, sums("fixed:16,15"));
}

Tensor random(std::vector<std::int64_t> dims, int seed) {
  Tensor tensor(DType::F32, std::move(dims));
  int n = seed;
  for (float& value : tensor.mutable_data<float>())
    value = std::sin(static_cast<float>(7 * n++)) * 2.0f;
  return tensor;
}

Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::int64_t width = tensor.dims().back();
  return Tensor::from<float>({1, count, width},
                             tensor.data<float>().subspan(static_cast<std::size_t>(first * width),
                                                          static_cast<std::size_t>(count * width)));
}

TEST(RoundedAttention, GivesPackedSequencesWhatPaddedRowsGive) {
  // Sequences of 2 and 5 tokens; the first is padded to 5.
  const Tensor q = random({7, 8}, 1), k = random({7, 8}, 2), v = random({7, 8}, 3);
  const auto padded = [](const Tensor& packed) {
    Tensor result = random({2, 5, 8}, 77);
    const std::span<float> target = result.mutable_data<float>();
    const std::span<const float> source = packed.data<float>();
    std::copy_n(source.begin(), 16, target.begin());
    std::copy_n(source.begin() + 16, 40, target.begin() + 40);
    return result;
  };
  for (const std::string& format : kFormats)
    for (const std::string causal : {"false", "true"}) {
      const std::string attributes =
          "{heads=2, causal=" + causal + ", weight_format=\"" + format + "\"}";
      SCOPED_TRACE(attributes);
      const std::vector<float> packed_result =
          result_of("attention(f32[7,8], f32[7,8], f32[7,8], none, i32[3]) " + attributes,
                    {q, k, v, i32({3}, {0, 2, 7})});
      const std::vector<float> padded_result =
          result_of("attention(f32[2,5,8], f32[2,5,8], f32[2,5,8], i64[2,5]) " + attributes,
                    {padded(q), padded(k), padded(v), i64({2, 5}, {1, 1, 0, 0, 0, 1, 1, 1, 1, 1})});
      for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(packed_result[i], padded_result[i]) << i;
      for (std::size_t i = 16; i < 56; ++i) EXPECT_EQ(packed_result[i], padded_result[i + 24]) << i;
    }
}

TEST(RoundedAttention, SeesNothingOfLaterKeysWhenCausal) {
  const Tensor q = random({5, 8}, 1), k = random({5, 8}, 2), v = random({5, 8}, 3);
  for (const std::string& format : kFormats) {
    SCOPED_TRACE(format);
    const std::string weight_format = "weight_format=\"" + format + "\"}";
    const std::vector<float> all = result_of(
        "attention(f32[1,5,8], f32[1,5,8], f32[1,5,8]) {heads=2, causal=true, " + weight_format,
        {rows(q, 0, 5), rows(k, 0, 5), rows(v, 0, 5)});
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::vector<float> one =
          result_of(fmt::format("attention(f32[1,1,8], f32[1,{0},8], f32[1,{0},8]) {{heads=2, {1}",
                                i + 1, weight_format),
                    {rows(q, i, 1), rows(k, 0, i + 1), rows(v, 0, i + 1)});
      EXPECT_EQ(std::vector<float>(all.begin() + 8 * i, all.begin() + 8 * (i + 1)), one) << i;
    }
  }
}

TEST(RoundedAttention, RefusesFormatsThatCannotRoundARowAlone) {
  const auto refusal = [](const std::string& format) {
    return refusal_of("attention(f32[B,L,8], f32[B,L,8], f32[B,L,8]) {heads=2, weight_format=\"" +
                      format + "\"}");
  };
  EXPECT_EQ(refusal("bfp:8,block=2x8"),
            "node \"y\": attention: bfp:8,block=2x8 has a scale for several rows, but each query's "
            "weights are rounded alone");
  EXPECT_EQ(refusal("int:8,channel"),
            "node \"y\": attention: int:8,channel is handed a scale for each row, but weights lie "
            "between 0 and 1 in all of them: use a format with one scale, a dynamic one, or one "
            "with blocks of its own");
  EXPECT_EQ(refusal("float"),
            "node \"y\": weight_format \"float\" rounds nothing: expected a narrower one, or "
            "\"\"");
  EXPECT_THAT(refusal("itn:8"), testing::HasSubstr("unknown"));
}

}  // namespace
}  // namespace lathe::ops
