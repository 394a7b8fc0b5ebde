#include <gtest/gtest.h>

#include <array>

#include "lathe/core/error.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/example.h"

namespace lathe::ops {
namespace {

using Integers = std::vector<std::int64_t>;

template <typename T>
Tensor integers(std::vector<std::int64_t> dims, std::initializer_list<T> values) {
  return Tensor::from<T>(std::move(dims), values);
}

Integers run(std::string_view call, const std::vector<Tensor>& inputs) {
  return read_integers(evaluate(call, inputs)[0]);
}

TEST(ToInteger, GivesTheCodesOfQuantize) {
  // 0.5 and 1.5 steps go to even; 200 steps are beyond the range.
  const Tensor x = Tensor::from<float>({5}, {0.0625f, 0.1875f, -0.0625f, 25.0f, -25.0f});
  EXPECT_EQ(run("to_integer(f32[5]) {width=8, scale=[0.125]}", {x}),
            (Integers{0, 2, 0, 127, -128}));
  EXPECT_EQ(run("to_integer(f32[5]) {width=8, symmetric=true, scale=[0.125]}", {x})[4], -127);
  EXPECT_EQ(run("to_integer(f32[5]) {width=8, signed=false, scale=[0.125]}", {x})[4], 0);
}

TEST(FromInteger, MultipliesWithTheScaleOfTheLastAxis) {
  const std::vector<Tensor> y = evaluate("from_integer(i8[1,2]) {scale=[0.5, 0.25]}",
                                         {integers<std::int8_t>({1, 2}, {3, 3})});
  EXPECT_EQ(read_elements(y[0]), (std::vector<double>{1.5, 0.75}));
}

TEST(IntegerLinear, SumsExactly) {
  const Tensor x = integers<std::int8_t>({1, 2}, {-128, 127});
  const Tensor w = integers<std::int8_t>({2, 2}, {-128, 127, 1, 1});
  const Tensor b = integers<std::int32_t>({2}, {5, -7});
  EXPECT_EQ(run("integer_linear(i8[1,2], i8[2,2], i32[2]) {width=18}", {x, w, b}),
            (Integers{128 * 128 + 127 * 127 + 5, -8}));
}

// The register is 12, 25, 50, its low four bits 12, 9, 2: slopes of 17, 15 and 9 64ths. -8 * 17 /
// 64 = -2.125 floors to -3.
TEST(IntegerRrelu, HasASlopeForEachBeatAndFloors) {
  const Tensor x = integers<std::int8_t>({1, 6}, {-1, -8, 5, -64, -64, 64});
  EXPECT_EQ(run("integer_rrelu(i8[1,6]) {first=12}", {x}), (Integers{-1, -3, 5, -17, -15, 64}));
  // Rows begin with a beat, and the register goes on.
  const Tensor rows = integers<std::int8_t>({3, 1}, {-64, -64, -64});
  EXPECT_EQ(run("integer_rrelu(i8[3,1]) {first=12}", {rows}), (Integers{-17, -15, -9}));
}

TEST(Requant, HasAMultiplierForEachChannel) {
  const Tensor x = integers<std::int32_t>({2, 2}, {10, 10, -10, -10});
  const Tensor m = integers<std::int32_t>({2}, {3, 5});
  // 30/4 = 7.5 to 8 (even), 50/4 = 12.5 to 12 (even).
  EXPECT_EQ(run("requant(i32[2,2], i32[2]) {shift=2, width=8}", {x, m}),
            (Integers{8, 12, -8, -12}));
  EXPECT_EQ(run("requant(i32[2,2], i32[2]) {shift=2, width=8, rounding=\"half_up\"}", {x, m}),
            (Integers{8, 13, -7, -12}));
  EXPECT_EQ(run("requant(i32[2,2], i32[2]) {shift=2, width=4, rounding=\"floor\"}", {x, m}),
            (Integers{7, 7, -8, -8}));
}

TEST(IntegerAdd, BringsBothToOneScale) {
  EXPECT_EQ(
      run("integer_add(i8[2,2], i16[2]) {multiplier_a=4, width=16}",
          {integers<std::int8_t>({2, 2}, {1, 2, 3, 4}), integers<std::int16_t>({2}, {100, 200})}),
      (Integers{104, 208, 112, 216}));
}

TEST(IntegerTable, BeginsAtItsLowestNumber) {
  const Tensor table = integers<std::int8_t>({4}, {9, 8, 7, 6});
  const auto look_up = [&](std::int8_t x) {
    return run("integer_table(i8[1], i8[4]) {low=-2, width=8}",
               {integers<std::int8_t>({1}, {x}), table});
  };
  EXPECT_EQ(look_up(-2), Integers{9});
  EXPECT_EQ(look_up(1), Integers{6});
  EXPECT_THROW(look_up(2), UserError);
}

TEST(IntegerSoftmax, DividesByTheSumOfExponentials) {
  // A distance of 64 steps is a factor of 2: 32767, 16384 and 8192 of 57343.
  EXPECT_EQ(run("integer_softmax(i32[3]) {exponent_multiplier=64, exponent_shift=1, "
                "multiplier=1000, width=16}",
                {integers<std::int32_t>({3}, {4, 2, 0})}),
            (Integers{571, 286, 143}));
}

TEST(IntegerAttention, DividesOnceBehindTheSum) {
  // Scores 4 and 2: weights 32767 and 16384, so y = (32767 * 90 + 16384 * 30) / 49151 = 70.0003.
  const Tensor q = integers<std::int8_t>({1, 1, 1}, {2});
  const Tensor k = integers<std::int8_t>({1, 2, 1}, {2, 1});
  const Tensor v = integers<std::int8_t>({1, 2, 1}, {90, 30});
  EXPECT_EQ(run("integer_attention(i8[1,1,1], i8[1,2,1], i8[1,2,1]) {heads=1, "
                "exponent_multiplier=64, exponent_shift=1, width=8}",
                {q, k, v}),
            Integers{70});
  EXPECT_EQ(run("integer_attention(i8[1,1,1], i8[1,2,1], i8[1,2,1]) {heads=1, "
                "exponent_multiplier=64, exponent_shift=1, multiplier=3, shift=1, width=16}",
                {q, k, v}),
            Integers{105});
}

TEST(IntegerAttention, LooksAtKeptKeysAloneAndAtAllWhereNoneIsKept) {
  const Tensor q = integers<std::int8_t>({1, 2, 1}, {1, 1});
  const Tensor k = integers<std::int8_t>({1, 2, 1}, {100, 1});
  const Tensor v = integers<std::int8_t>({1, 2, 1}, {50, 20});
  const auto attend = [&](std::int64_t first, std::int64_t second) {
    return run(
        "integer_attention(i8[1,2,1], i8[1,2,1], i8[1,2,1], i64[1,2]) {heads=1, "
        "exponent_multiplier=64, exponent_shift=1, width=8}",
        {q, k, v, integers<std::int64_t>({1, 2}, {first, second})});
  };
  EXPECT_EQ(attend(1, 1), (Integers{50, 50}));
  EXPECT_EQ(attend(0, 1), (Integers{20, 20}));
  EXPECT_EQ(attend(0, 0), (Integers{35, 35}));
}

TEST(IntegerLayerNorm, AppliesWeightAndBiasBehindTheDivision) {
  // The row of normalization_test: z is -344 and 115 in 2^-8, then (z * 3 + 10) / 4.
  EXPECT_EQ(
      run("integer_layer_norm(i16[1,4], i32[4], i32[4]) {root_fraction=4, fraction=8, "
          "shift=2, width=16}",
          {integers<std::int16_t>({1, 4}, {2, 4, 6, 8}), integers<std::int32_t>({4}, {3, 3, 3, -3}),
           integers<std::int32_t>({4}, {10, 10, 10, 10})}),
      (Integers{-256, -84, 89, -256}));  // -255.5, -83.75, 88.75, -255.5
}

TEST(Argmax, TakesTheFirstOfEqualOnes) {
  EXPECT_EQ(run("argmax(i8[2,3])", {integers<std::int8_t>({2, 3}, {1, 5, 5, -3, -2, -1})}),
            (Integers{1, 2}));
}

TEST(Argmax, FindsNoneBesideANaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({4, 3}, {1, 2, nan, nan, 2, 1, 1, nan, 3, 1, 3, 2});
  EXPECT_EQ(run("argmax(f32[4,3])", {x}), (Integers{-1, -1, -1, 1}));
}

}  // namespace
}  // namespace lathe::ops
