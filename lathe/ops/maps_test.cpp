#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

float map(const std::string& call, float x) {
  return result_of(call, {f32({1}, {x})})[0];
}

TEST(UnaryMaps, ComputeWhatTheirNamesSay) {
  EXPECT_EQ(map("relu(f32[1])", -2), 0);
  EXPECT_EQ(map("relu(f32[1])", 2), 2);
  EXPECT_FLOAT_EQ(map("leaky_relu(f32[1])", -2), -0.02);
  EXPECT_EQ(map("leaky_relu(f32[1]) {slope=0.5}", -2), -1);
  EXPECT_EQ(map("neg(f32[1])", 3), -3);
  EXPECT_EQ(map("abs(f32[1])", -3), 3);
  EXPECT_EQ(map("sqrt(f32[1])", 9), 3);
  EXPECT_EQ(map("reciprocal(f32[1])", 4), 0.25);
  EXPECT_EQ(map("sigmoid(f32[1])", 0), 0.5);
  EXPECT_FLOAT_EQ(map("silu(f32[1])", std::log(3.0f)), 0.75 * std::log(3.0));
  EXPECT_FLOAT_EQ(map("exp(f32[1])", 1), 2.7182818);
  EXPECT_FLOAT_EQ(map("log(f32[1])", 2), 0.69314718);
  EXPECT_FLOAT_EQ(map("tanh(f32[1])", 1), 0.76159416);
  EXPECT_FLOAT_EQ(map("erf(f32[1])", 1), 0.84270079);
  EXPECT_FLOAT_EQ(map("sin(f32[1])", 1), 0.84147098);
  EXPECT_FLOAT_EQ(map("cos(f32[1])", 1), 0.54030231);
}

TEST(UnaryMaps, KnowThreeKindsOfGelu) {
  EXPECT_FLOAT_EQ(map("gelu(f32[1])", 1), 0.84134475);  // the normal distribution function at 1
  EXPECT_FLOAT_EQ(map("gelu(f32[1]) {approximate=\"tanh\"}", 1), 0.84119199);
  EXPECT_FLOAT_EQ(map("quick_gelu(f32[1])", 1), 1.0 / (1.0 + std::exp(-1.702)));
  EXPECT_EQ(refusal_of("gelu(f32[1]) {approximate=\"tan\"}"),
            "node \"y\": unknown approximation \"tan\"; known: none, tanh");
}

TEST(UnaryMaps, LetNanPass) {
  EXPECT_TRUE(std::isnan(map("relu(f32[1])", std::numeric_limits<float>::quiet_NaN())));
}

TEST(UnaryMaps, RefuseIntegersWhereTheResultWouldNotBeOne) {
  EXPECT_EQ(type_of("neg(i64[3])"), "i64[3]");
  EXPECT_EQ(refusal_of("exp(i64[3])"),
            "node \"y\": exp works on floating-point numbers, not i64[3]");
}

TEST(BinaryMaps, ComputeWhatTheirNamesSay) {
  const std::vector<Tensor> inputs = {f32({2}, {6, -1}), f32({2}, {2, 4})};
  EXPECT_THAT(result_of("add(f32[2], f32[2])", inputs), ElementsAre(8, 3));
  EXPECT_THAT(result_of("sub(f32[2], f32[2])", inputs), ElementsAre(4, -5));
  EXPECT_THAT(result_of("mul(f32[2], f32[2])", inputs), ElementsAre(12, -4));
  EXPECT_THAT(result_of("div(f32[2], f32[2])", inputs), ElementsAre(3, -0.25));
  EXPECT_THAT(result_of("pow(f32[2], f32[2])", inputs), ElementsAre(36, 1));
  EXPECT_THAT(result_of("minimum(f32[2], f32[2])", inputs), ElementsAre(2, -1));
  EXPECT_THAT(result_of("maximum(f32[2], f32[2])", inputs), ElementsAre(6, 4));
}

// What is beyond 2^53 is no double, and what is too large wraps around.
TEST(BinaryMaps, ComputeExactlyWithWholeNumbers) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto integers = [](const std::string& op, std::int64_t a, std::int64_t b) {
    return read_integers(evaluate(op + "(i64[1], i64[1])", {i64({1}, {a}), i64({1}, {b})})[0])[0];
  };
  EXPECT_EQ(integers("add", kLarge, 2), kLarge + 2);
  EXPECT_EQ(integers("sub", kLeast, 1), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integers("mul", kLarge, 3), 3 * kLarge);
  EXPECT_EQ(integers("div", -7, 2), -3);
  EXPECT_EQ(integers("div", kLeast, -1), kLeast);
  EXPECT_EQ(integers("mod", kLarge, 2), 1);
  EXPECT_EQ(integers("mod", -7, 3), 2);
  EXPECT_EQ(integers("fmod", -7, 3), -1);
  EXPECT_EQ(integers("minimum", kLarge, kLarge - 1), kLarge - 1);
  EXPECT_EQ(integers("pow", 3, 39), 4052555153018976267);
  EXPECT_EQ(integers("pow", -1, -3), -1);
  EXPECT_EQ(integers("pow", 2, -1), 0);
}

TEST(BinaryMaps, BroadcastSizesOfOne) {
  EXPECT_THAT(result_of("add(f32[2,1], f32[3])", {f32({2, 1}, {10, 20}), f32({3}, {1, 2, 3})}),
              ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_EQ(type_of("mul(f32[B,1,4], f32[L,1])"), "f32[B,L,4]");
  EXPECT_EQ(type_of("mul(f32[], f32[T])"), "f32[T]");
}

TEST(BinaryMaps, RefuseOperandsThatDoNotFit) {
  EXPECT_EQ(refusal_of("add(f32[2,3], f32[2,4])"),
            "node \"y\": cannot add f32[2,3] and f32[2,4]: sizes 3 and 4 differ");
  EXPECT_EQ(refusal_of("add(f32[T,4], f32[L,4])"),
            "node \"y\": cannot add f32[T,4] and f32[L,4]: sizes T and L differ");
  EXPECT_EQ(refusal_of("add(f32[2], i64[2])"),
            "node \"y\": cannot add f32[2] and i64[2]: dtypes f32 and i64 differ");
}

TEST(Cast, RoundsFloatsTowardZeroToIntegers) {
  EXPECT_THAT(result_of("cast(f32[3]) : i32[3]", {f32({3}, {1.9f, -1.9f, 2})}),
              ElementsAre(1, -1, 2));
  EXPECT_EQ(refusal_of("cast(f32[3])"),
            "node \"y\": cast needs its result type written, such as \": f32[B,128]\"");
}

TEST(Dropout, RefusesARateThatDropsEverything) {
  EXPECT_EQ(refusal_of("dropout(f32[3]) {rate=1.0}"),
            "node \"y\": dropout rate 1 must be at least 0 and below 1");
}

}  // namespace
}  // namespace lathe::ops
