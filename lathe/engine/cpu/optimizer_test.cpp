#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

class OptimizerKernel : public EveryIsa {
 protected:
  // The constants of step 3 at a learning rate of 0.01.
  static constexpr double kRate = 0.01, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  static constexpr int kStep = 3;
  static AdamwArgs adamw(Matrix& param, const Matrix& gradient, Matrix& m, Matrix& v) {
    return {.count = param.columns(),
            .param = param.data(),
            .gradient = gradient.data(),
            .m = m.data(),
            .v = v.data(),
            .scale = 0.25f,
            .beta1 = static_cast<float>(kBeta1),
            .one_minus_beta1 = static_cast<float>(1 - kBeta1),
            .beta2 = static_cast<float>(kBeta2),
            .one_minus_beta2 = static_cast<float>(1 - kBeta2),
            .decay = static_cast<float>(1 - kRate * kDecay),
            .step_size = static_cast<float>(kRate / (1 - std::pow(kBeta1, kStep))),
            .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, kStep))),
            .eps = static_cast<float>(kEps)};
  }
  // Positive second moments of the size the corrections expect.
  static Matrix second_moments(std::int64_t count) {
    Matrix v = Matrix::random(1, count, 0, 9);
    for (std::int64_t c = 0; c < count; ++c) v(0, c) = 1e-4f * v(0, c) * v(0, c);
    return v;
  }
};

// Each result is a handful of roundings of terms no larger than those below.
constexpr double kUnits = 8 * kUnit;

TEST_P(OptimizerKernel, AdamwAgreesWithADoubleLoop) {
  for (const std::int64_t count : {1, 7, 16, 40, 333})
    for (const bool has_gradient : {true, false}) {
      const Matrix param = Matrix::random(1, count, 0, 1);
      const Matrix gradient = Matrix::random(1, count, 0, 2);
      const Matrix m = Matrix::random(1, count, 0, 3);
      const Matrix v = second_moments(count);
      Matrix new_param = param, new_m = m, new_v = v;
      AdamwArgs args = adamw(new_param, gradient, new_m, new_v);
      if (!has_gradient) args.gradient = nullptr;
      table().adamw(args);
      for (std::int64_t c = 0; c < count; ++c) {
        const double g = has_gradient ? 0.25 * double{gradient(0, c)} : 0.0;
        const double exact_m = kBeta1 * m(0, c) + (1 - kBeta1) * g;
        const double exact_v = kBeta2 * v(0, c) + (1 - kBeta2) * g * g;
        const double root = std::sqrt(exact_v / (1 - std::pow(kBeta2, kStep)));
        const double step = kRate / (1 - std::pow(kBeta1, kStep)) * exact_m / (root + kEps);
        const double exact_param = param(0, c) * (1 - kRate * kDecay) - step;
        const double m_error = kUnits * (std::abs(m(0, c)) + std::abs(g));
        ASSERT_NEAR(new_m(0, c), exact_m, m_error);
        ASSERT_NEAR(new_v(0, c), exact_v, kUnits * exact_v);
        ASSERT_NEAR(new_param(0, c), exact_param,
                    kUnits * (std::abs(param(0, c)) + std::abs(step)) +
                        m_error * std::abs(kRate / (1 - std::pow(kBeta1, kStep)) / root));
      }
      EXPECT_TRUE(new_param.guards_are_intact());
      EXPECT_TRUE(new_m.guards_are_intact());
      EXPECT_TRUE(new_v.guards_are_intact());
    }
}

TEST_P(OptimizerKernel, ANullGradientIsOneOfZeros) {
  const Matrix zeros(1, 50);
  Matrix param = Matrix::random(1, 50, 0, 1), m = Matrix::random(1, 50, 0, 2),
         v = second_moments(50);
  Matrix other_param = param, other_m = m, other_v = v;
  table().adamw(adamw(param, zeros, m, v));
  AdamwArgs args = adamw(other_param, zeros, other_m, other_v);
  args.gradient = nullptr;
  table().adamw(args);
  EXPECT_TRUE(other_param.has_same_bits(param));
  EXPECT_TRUE(other_m.has_same_bits(m));
  EXPECT_TRUE(other_v.has_same_bits(v));
}

TEST_P(OptimizerKernel, ANanScaleChangesNothing) {
  const Matrix gradient = Matrix::random(1, 20);
  const Matrix before = Matrix::random(1, 20, 0, 2);
  Matrix param = before, m = before, v = before;
  AdamwArgs args = adamw(param, gradient, m, v);
  args.scale = std::numeric_limits<float>::quiet_NaN();
  table().adamw(args);
  table().sgd({.count = 20,
               .param = param.data(),
               .gradient = gradient.data(),
               .velocity = m.data(),
               .scale = args.scale,
               .learning_rate = 0.1f,
               .momentum = 0.9f,
               .weight_decay = 0.1f});
  EXPECT_TRUE(param.has_same_bits(before));
  EXPECT_TRUE(m.has_same_bits(before));
  EXPECT_TRUE(v.has_same_bits(before));
}

TEST_P(OptimizerKernel, SgdAgreesWithADoubleLoop) {
  for (const std::int64_t count : {1, 19, 64})
    for (const bool has_momentum : {true, false}) {
      const Matrix param = Matrix::random(1, count, 0, 1);
      const Matrix gradient = Matrix::random(1, count, 0, 2);
      const Matrix velocity = Matrix::random(1, count, 0, 3);
      Matrix new_param = param, new_velocity = velocity;
      table().sgd({.count = count,
                   .param = new_param.data(),
                   .gradient = gradient.data(),
                   .velocity = has_momentum ? new_velocity.data() : nullptr,
                   .scale = 0.5f,
                   .learning_rate = 0.1f,
                   .momentum = has_momentum ? 0.9f : 0.0f,
                   .weight_decay = 0.01f});
      for (std::int64_t c = 0; c < count; ++c) {
        const double g = 0.5 * double{gradient(0, c)} + double{0.01f} * double{param(0, c)};
        const double exact = (has_momentum ? double{0.9f} * double{velocity(0, c)} : 0.0) + g;
        ASSERT_NEAR(new_param(0, c), param(0, c) - double{0.1f} * exact, 16 * kUnits);
        if (has_momentum) {
          ASSERT_NEAR(new_velocity(0, c), exact, 16 * kUnits);
        } else {
          ASSERT_EQ(new_velocity(0, c), velocity(0, c));
        }
      }
      EXPECT_TRUE(new_param.guards_are_intact());
      EXPECT_TRUE(new_velocity.guards_are_intact());
    }
}

TEST_P(OptimizerKernel, SumOfSquaresIsThatOfItsBlocksInOrder) {
  for (const std::int64_t count : {0, 1, 31, 32, 33, 4095, 4096, 4097, 20000}) {
    SCOPED_TRACE(count);
    const Matrix x = Matrix::random(1, count);
    double exact = 0;
    for (std::int64_t c = 0; c < count; ++c) exact += double{x(0, c)} * double{x(0, c)};
    const double whole = table().sum_squares(x.data(), count);
    EXPECT_NEAR(whole, exact, 1e-12 * exact);
    double parts = 0;
    for (std::int64_t start = 0; start < count; start += kSquaresBlock)
      parts += table().sum_squares(x.data() + start, std::min(kSquaresBlock, count - start));
    EXPECT_EQ(parts, whole);
    EXPECT_EQ(kernels(Isa::Plain).sum_squares(x.data(), count), whole);
  }
}

TEST_P(OptimizerKernel, SumOfSquaresNeitherOverflowsNorHidesNan) {
  Matrix x(1, 40);
  x.fill(3e38f);
  EXPECT_NEAR(table().sum_squares(x.data(), 40), 40 * double{3e38f} * double{3e38f}, 1e62);
  x(0, 39) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(table().sum_squares(x.data(), 40)));
}

INSTANTIATE_TEST_SUITE_P(, OptimizerKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
