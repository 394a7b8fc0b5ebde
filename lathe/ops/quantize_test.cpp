#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Quantize, RoundsToFixedPointWithTiesToEvenAndClips) {
  // In sixteenths: 0.48, 0.5, 1.5, 128 and -1600.
  EXPECT_THAT(result_of(R"(quantize(f32[1,5]) {format="fixed:8,4"})",
                        {f32({1, 5}, {0.03f, 0.03125f, 0.09375f, 8, -100})}),
              ElementsAre(0, 0, 0.125f, 7.9375f, -8));
}

TEST(Quantize, KeepsNanInFormatsThatHaveNoCodeForIt) {
  EXPECT_THAT(result_of(R"(quantize(f32[1,3]) {format="fixed:8,4"})", {f32({1, 3}, {1, kNan, 9})}),
              ElementsAre(1, testing::IsNan(), 7.9375f));
  EXPECT_THAT(
      result_of(R"(quantize(f32[1,3]) {format="int:8,dynamic"})", {f32({1, 3}, {0, kNan, 127})}),
      ElementsAre(0, testing::IsNan(), 127));
  // Rows along the second axis.
  EXPECT_THAT(result_of(R"(quantize(f32[2,2], f32[2]) {format="int:4,channel", axis=1})",
                        {f32({2, 2}, {1, 2, kNan, 4}), f32({2}, {1, 2})}),
              ElementsAre(1, 2, testing::IsNan(), 4));
}

TEST(Quantize, TakesTheScaleOfEachRow) {
  // In steps of 0.5: 2.6, -40 and 0.2; in steps of 2: 2.6, -40 and 0.5. Codes are -7 to 7.
  EXPECT_THAT(result_of(R"(quantize(f32[2,3], f32[2]) {format="int:4,channel"})",
                        {f32({2, 3}, {1.3f, -20, 0.1f, 5.2f, -80, 1}), f32({2}, {0.5f, 2})}),
              ElementsAre(1.5f, -3.5f, 0, 6, -14, 0));
}

TEST(Quantize, TakesTheScaleOfEachGroupOfARow) {
  EXPECT_THAT(result_of(R"(quantize(f32[1,4], f32[1,2]) {format="int:4,group=2"})",
                        {f32({1, 4}, {1.3f, -20, 1.3f, -20}), f32({1, 2}, {0.5f, 2})}),
              ElementsAre(1.5f, -3.5f, 2, -14));
}

TEST(Quantize, ShiftsByAZeroPoint) {
  // Codes 0 to 255 mean -5 to 122.5; 1.3 is 2.6 steps above 0.
  EXPECT_THAT(result_of(R"(quantize(f32[4], f32[], f32[]) {format="int:8,asymmetric"})",
                        {f32({4}, {1.3f, -5.1f, -9, 200}), f32({}, {0.5f}), f32({}, {10})}),
              ElementsAre(1.5f, -5, -5, 122.5f));
}

TEST(Quantize, RefusesScalesThatItsFormatHasNoUseForOrLacks) {
  EXPECT_EQ(refusal_of(R"(quantize(f32[3,8]) {format="int:4,channel"})"),
            "node \"y\": quantize: int:4,channel needs a scale");
  EXPECT_EQ(refusal_of(R"(quantize(f32[3,8], f32[]) {format="fixed:8,4"})"),
            "node \"y\": quantize: fixed:8,4 takes no scale: it has none or makes its own");
  EXPECT_EQ(refusal_of(R"(quantize(f32[T,8], f32[]) {format="int:8,asymmetric"})"),
            "node \"y\": quantize: int:8,asymmetric needs a zero point");
  EXPECT_EQ(refusal_of(R"(quantize(f32[T,8], f32[], f32[]) {format="int:8"})"),
            "node \"y\": quantize: int:8 takes no zero point");
  EXPECT_EQ(
      refusal_of(R"(quantize(f32[3,8], f32[8]) {format="int:4,channel"})"),
      "node \"y\": quantize: operand 1 is f32[8], but int:4,channel of f32[3,8] needs f32[3]");
  EXPECT_EQ(refusal_of(R"(quantize(f32[3,8], f32[3,2]) {format="int:4,group=3"})"),
            "node \"y\": quantize: operand 1 is f32[3,2], but int:4,group=3 of f32[3,8] needs "
            "f32[3,3]");
}

TEST(Quantize, RefusesWhatIsNoMatrixOfFloatsOrNoFormat) {
  EXPECT_EQ(refusal_of(R"(quantize(f64[3,8]) {format="fixed:8,4"})"),
            "node \"y\": quantize: x f64[3,8] is not f32");
  EXPECT_EQ(refusal_of(R"(quantize(f32[3,8]) {format="float"})"),
            "node \"y\": format \"float\" rounds nothing: expected a narrower one");
  EXPECT_EQ(refusal_of(R"(quantize(f32[3,8]) {format="fixd:8,4"})").substr(0, 39),
            "node \"y\": unknown format family \"fixd\";");
}

TEST(Quantize, RefusesAScaleForSeveralTokensOfABatch) {
  EXPECT_EQ(type_of(R"(quantize(f32[6,32]) {format="ternary:tensor"})"), "f32[6,32]");
  EXPECT_EQ(refusal_of(R"(quantize(f32[T,32]) {format="ternary:tensor"})"),
            "node \"y\": quantize: ternary:tensor has a scale for several rows, but those of "
            "f32[T,32] are a batch's");
  EXPECT_EQ(refusal_of(R"(quantize(f32[T,32]) {format="bfp:8,block=4x16"})"),
            "node \"y\": quantize: bfp:8,block=4x16 has a scale for several rows, but those of "
            "f32[T,32] are a batch's");
}

TEST(GateGradient, PassesBetweenTheTwoEndsAndAtThem) {
  EXPECT_THAT(result_of("gate_gradient(f32[6], f32[6]) {minimum=-8.0, maximum=7.5}",
                        {f32({6}, {1, 2, 3, 4, 5, 6}), f32({6}, {-8.5f, -8, 0, 7.5f, 8, kNan})}),
              ElementsAre(0, 2, 3, 4, 0, 6));
  EXPECT_EQ(refusal_of("gate_gradient(f32[6], f32[5]) {minimum=0.0, maximum=1.0}"),
            "node \"y\": gate_gradient: dy f32[6] and x f32[5] differ in shape");
}

TEST(LearnedStepGradient, GivesEachRowsScaleItsRoundingAndItsClipping) {
  // Steps of 0.5: 0.6 is inside, 10 beyond 7 steps. Steps of 1: -7 is the last inside.
  const std::vector<Tensor> gradients = evaluate(
      R"(learned_step_gradient(f32[2,2], f32[2,2], f32[2,2], f32[2]) {format="int:4,channel"})",
      {f32({2, 2}, {1, 2, 3, 1}), f32({2, 2}, {0.6f, 10, -0.4f, -7}),
       f32({2, 2}, {0.5f, 3.5f, 0, -7}), f32({2}, {0.5f, 1})});
  EXPECT_THAT(gradients[0].data<float>(), ElementsAre(1, 0, 3, 1));
  const double factor = 1 / std::sqrt(2 * 7.0);
  EXPECT_THAT(gradients[1].data<float>(),
              ElementsAre(FloatNear(static_cast<float>((1 * -0.1 + 2 * 3.5) / 0.5 * factor), 1e-5f),
                          FloatNear(static_cast<float>((3 * 0.4 + 0) / 1 * factor), 1e-6f)));
}

TEST(LearnedStepGradient, SumsOverTheWholeTensorForOneScale) {
  const std::vector<Tensor> gradients =
      evaluate(R"(learned_step_gradient(f32[2,2], f32[2,2], f32[2,2], f32[]) {format="int:8"})",
               {f32({2, 2}, {1, 1, 1, 2}), f32({2, 2}, {0.25f, -0.5f, 1.75f, -300}),
                f32({2, 2}, {0, 0, 2, -127}), f32({}, {1})});
  EXPECT_THAT(gradients[0].data<float>(), ElementsAre(1, 1, 1, 0));
  // A scale of a tensor is divided by what a row of it would be: a batch has any number of rows.
  const double expected = (-0.25 + 0.5 + 0.25 + 2 * -127) / std::sqrt(2 * 127.0);
  EXPECT_NEAR(gradients[1].at(0), expected, 1e-5);
}

TEST(LearnedStepGradient, CountsTheRangeFromTheZeroPoint) {
  // Codes 0 to 255 at zero point 10 and scale 0.5: -5 is the smallest number.
  const std::vector<Tensor> gradients = evaluate(
      R"(learned_step_gradient(f32[2], f32[2], f32[2], f32[], f32[])
                  {format="int:8,asymmetric"})",
      {f32({2}, {1, 3}), f32({2}, {1.25f, -9}), f32({2}, {1, -5}), f32({}, {0.5f}), f32({}, {10})});
  EXPECT_THAT(gradients[0].data<float>(), ElementsAre(1, 0));
  EXPECT_NEAR(gradients[1].at(0), (-0.25 + 3 * -5) / 0.5 / std::sqrt(2 * 255.0), 1e-5);
}

TEST(LearnedStepGradient, CountsAsInsideWhatRoundsToTheLastNumbersUnclipped) {
  // A scale that covers the largest value puts it at 7 steps, give or take a rounding.
  EXPECT_THAT(evaluate(R"(learned_step_gradient(f32[4], f32[4], f32[4], f32[]) {format="int:4"})",
                       {f32({4}, {1, 2, 3, 4}), f32({4}, {7.000001f, 7.4f, 7.6f, -7.6f}),
                        f32({4}, {7, 7, 7, -7}), f32({}, {1})})[0]
                  .data<float>(),
              ElementsAre(1, 2, 0, 0));
}

TEST(LearnedStepGradient, ShowsANanInBothGradients) {
  const std::vector<Tensor> gradients =
      evaluate(R"(learned_step_gradient(f32[2], f32[2], f32[2], f32[]) {format="int:8"})",
               {f32({2}, {5, 1}), f32({2}, {kNan, 1}), f32({2}, {kNan, 1}), f32({}, {1})});
  EXPECT_THAT(gradients[0].data<float>(), ElementsAre(5, 1));
  EXPECT_TRUE(std::isnan(gradients[1].at(0)));
}

TEST(LearnedStepGradient, RefusesGradientsOfAnotherShape) {
  EXPECT_EQ(refusal_of(R"(learned_step_gradient(f32[2,3], f32[3,2], f32[3,2], f32[])
                          {format="int:8"})"),
            "node \"y_2\": learned_step_gradient: dy f32[2,3], x f32[3,2] and y f32[3,2] differ");
}

}  // namespace
}  // namespace lathe::ops
