#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor f64(std::vector<std::int64_t> dims, std::initializer_list<double> values) {
  return Tensor::from<double>(std::move(dims), values);
}
Tensor step(std::int32_t number) {
  return i32({3}, {1, 2, number});
}

const std::vector<Tensor> kGradients = {f64({3}, {0.5, -2.0, 0.0}), f64({3}, {1.0, 3.0, -0.25}),
                                        f64({3}, {-0.75, 0.125, 4.0})};

constexpr char kAdamw[] =
    "adamw(f64[3], f64[3], f64[3], f64[3], f64[], f64[], i32[3]) "
    "{beta1=0.9, beta2=0.99, eps=0.001, weight_decay=0.05}";

// As PyTorch writes it: decay, lerp, addcmul, then addcdiv with the corrections on the step size
// and on the denominator.
TEST(Adamw, TakesThreeStepsAsPytorchDefinesThem) {
  Tensor param = f64({3}, {1.0, -0.5, 2.0}), m(DType::F64, {3}), v(DType::F64, {3});
  double expected[] = {1.0, -0.5, 2.0}, average[3] = {}, squares[3] = {};
  for (int t = 1; t <= 3; ++t) {
    const Tensor& gradient = kGradients[static_cast<std::size_t>(t - 1)];
    const std::vector<Tensor> results =
        evaluate(kAdamw, {param, gradient, m, v, f64({}, {0.1}), f64({}, {0.5}), step(t)});
    param = results[0], m = results[1], v = results[2];
    for (int i = 0; i < 3; ++i) {
      const double g = gradient.at(i) * 0.5;
      expected[i] *= 1 - 0.1 * 0.05;
      average[i] += (g - average[i]) * (1 - 0.9);
      squares[i] = squares[i] * 0.99 + (1 - 0.99) * g * g;
      const double step_size = 0.1 / (1 - std::pow(0.9, t));
      const double denominator = std::sqrt(squares[i]) / std::sqrt(1 - std::pow(0.99, t)) + 0.001;
      expected[i] -= step_size * average[i] / denominator;
      // A few roundings of numbers below 4, each 2^-52 of them.
      EXPECT_NEAR(param.at(i), expected[i], 1e-14) << "step " << t << ", element " << i;
      EXPECT_NEAR(m.at(i), average[i], 1e-14);
      EXPECT_NEAR(v.at(i), squares[i], 1e-14);
    }
  }
}

// On the first step the corrected moments are g and g^2: the step is the rate times g's sign.
TEST(Adamw, MovesByTheLearningRateOnTheFirstStep) {
  const std::vector<Tensor> results =
      evaluate("adamw(f64[3], f64[3], f64[3], f64[3], f64[], f64[], i32[3]) {eps=0.0}",
               {f64({3}, {1, 1, 1}), f64({3}, {0.001, -7, 100}), f64({3}, {0, 0, 0}),
                f64({3}, {0, 0, 0}), f64({}, {0.25}), f64({}, {1}), step(1)});
  EXPECT_NEAR(results[0].at(0), 0.75, 1e-12);
  EXPECT_NEAR(results[0].at(1), 1.25, 1e-12);
  EXPECT_NEAR(results[0].at(2), 0.75, 1e-12);
}

TEST(Adamw, ChangesNothingWhenTheScaleIsNan) {
  const Tensor param = f64({3}, {1, -2, 3}), m = f64({3}, {4, 5, 6}), v = f64({3}, {7, 8, 9});
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Tensor> results = evaluate(kAdamw, {param, f64({3}, {kNan, infinity, 1}), m, v,
                                                        f64({}, {0.1}), f64({}, {kNan}), step(1)});
  EXPECT_TRUE(identical(results[0], param));
  EXPECT_TRUE(identical(results[1], m));
  EXPECT_TRUE(identical(results[2], v));
}

TEST(Adamw, RefusesStepsThatCountFromZeroAndOtherShapes) {
  const Tensor x = f64({3}, {1, 2, 3});
  EXPECT_EQ(message_of([&] {
              evaluate(kAdamw, {x, x, x, x, f64({}, {0.1}), f64({}, {1}), step(0)});
            }),
            "node \"y\": step 0 in random must count from 1");
  EXPECT_EQ(refusal_of("adamw(f32[3], f32[4], f32[3], f32[3], f32[], f32[], i32[3])"),
            "node \"y\": adamw: f32[4] of a parameter f32[3] has another shape");
  EXPECT_EQ(refusal_of("adamw(f32[3], f32[3], f32[3], f32[3], f32[1], f32[], i32[3])"),
            "node \"y\": adamw needs learning_rate of rank 0, not f32[1]");
}

constexpr char kSgd[] =
    "sgd(f64[3], f64[3], f64[3], f64[], f64[]) {momentum=0.9, weight_decay=0.05}";

// As PyTorch writes it: decay joins the gradient, the first buffer is the gradient itself.
TEST(Sgd, TakesThreeStepsAsPytorchDefinesThem) {
  Tensor param = f64({3}, {1.0, -0.5, 2.0}), velocity(DType::F64, {3});
  double expected[] = {1.0, -0.5, 2.0}, buffer[3] = {};
  for (int t = 1; t <= 3; ++t) {
    const Tensor& gradient = kGradients[static_cast<std::size_t>(t - 1)];
    const std::vector<Tensor> results =
        evaluate(kSgd, {param, gradient, velocity, f64({}, {0.1}), f64({}, {0.5})});
    param = results[0], velocity = results[1];
    for (int i = 0; i < 3; ++i) {
      const double g = gradient.at(i) * 0.5 + 0.05 * expected[i];
      buffer[i] = t == 1 ? g : 0.9 * buffer[i] + g;
      expected[i] -= 0.1 * buffer[i];
      EXPECT_NEAR(param.at(i), expected[i], 1e-14) << "step " << t << ", element " << i;
      EXPECT_NEAR(velocity.at(i), buffer[i], 1e-14);
    }
  }
}

TEST(Sgd, ChangesNothingWhenTheScaleIsNan) {
  const Tensor param = f64({3}, {1, -2, 3}), velocity = f64({3}, {4, 5, 6});
  const std::vector<Tensor> results =
      evaluate(kSgd, {param, f64({3}, {kNan, 1, 1}), velocity, f64({}, {0.1}), f64({}, {kNan})});
  EXPECT_TRUE(identical(results[0], param));
  EXPECT_TRUE(identical(results[1], velocity));
}

std::vector<double> scale_and_norm(double total, double count, const std::string& attributes) {
  const std::vector<Tensor> results =
      evaluate("gradient_scale(f64[], f64[]) " + attributes, {f64({}, {total}), f64({}, {count})});
  return {results[0].at(0), results[1].at(0)};
}

TEST(GradientScale, DividesByTheCountAndReportsTheNormOfTheMean) {
  EXPECT_THAT(scale_and_norm(400, 4, ""), ElementsAre(0.25, 5));
  EXPECT_THAT(scale_and_norm(0, 4, "{max_norm=1.0}"), ElementsAre(0.25, 0));
}

TEST(GradientScale, ClipsOnlyNormsAboveTheLargest) {
  EXPECT_THAT(scale_and_norm(400, 4, "{max_norm=2.0}"), ElementsAre(0.25 * (2.0 / 5.000001), 5));
  EXPECT_THAT(scale_and_norm(400, 4, "{max_norm=5.0}"), ElementsAre(0.25, 5));
  EXPECT_THAT(scale_and_norm(400, 4, "{max_norm=8.0}"), ElementsAre(0.25, 5));
}

TEST(GradientScale, IsNanWhenTheNormIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(scale_and_norm(infinity, 4, "{max_norm=1.0}")[0]));
  EXPECT_EQ(scale_and_norm(infinity, 4, "")[1], infinity);
  EXPECT_TRUE(std::isnan(scale_and_norm(kNan, 4, "")[0]));
  EXPECT_TRUE(std::isnan(scale_and_norm(0, 0, "")[0]));  // an empty batch
  EXPECT_TRUE(std::isnan(scale_and_norm(1, 0, "")[0]));
}

TEST(SumSquares, AddsBlocksInDouble) {
  EXPECT_THAT(result_of("sum_squares(f32[2,2])", {f32({2, 2}, {1, -2, 3, -4})}), ElementsAre(30));
  // In float the first block would swallow the ones that follow.
  Tensor x(DType::F32, {4096 + 4});
  x.mutable_data<float>()[0] = 4096;
  for (std::size_t i = 4096; i < 4100; ++i) x.mutable_data<float>()[i] = 1;
  EXPECT_THAT(result_of("sum_squares(f32[4100])", {x}), ElementsAre(16777220.0f));
}

}  // namespace
}  // namespace lathe::ops
