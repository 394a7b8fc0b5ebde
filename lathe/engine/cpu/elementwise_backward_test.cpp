#include <cmath>
#include <functional>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ElementwiseBackwardKernel : public EveryIsa {
 protected:
  std::vector<float> slopes(Unary op, const std::vector<float>& x, float dy = 1.0f) const {
    const std::vector<float> ones(x.size(), dy);
    std::vector<float> dx(x.size());
    table().unary_backward(op, ones.data(), x.data(), static_cast<std::int64_t>(x.size()),
                           dx.data());
    return dx;
  }
  float slope(Unary op, float x, float dy = 1.0f) const {
    return slopes(op, std::vector<float>{x}, dy)[0];
  }
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double phi(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
double gelu_tanh_slope(double x) {
  const double c = std::sqrt(2 / M_PI);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

struct Derivative {
  Unary op;
  std::function<double(double)> exact;
  double relative, absolute;  // the bound is relative |exact| + absolute
};

// Exponentials of rounded arguments carry the argument's rounding, at most the argument in units:
// a relative error of u units where the result is e^-u. The absolute bounds are those of the
// functions themselves, where a derivative is a sum of terms of size 1.
const std::vector<Derivative> kDerivatives = {
    {Unary::None, [](double) { return 1.0; }, 0, 0},
    {Unary::GeluErf, [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2 + x * phi(x); }, 0,
     2.5e-7},
    {Unary::GeluTanh, gelu_tanh_slope, 0, 4e-7},
    {Unary::Tanh, [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }, 50 * kUnit, 0},
    {Unary::Sigmoid, [](double x) { return sigmoid(x) * sigmoid(-x); }, 8 * kUnit, 0},
    {Unary::Silu, [](double x) { return sigmoid(x) + x * sigmoid(x) * sigmoid(-x); }, 0, 2.5e-7},
    {Unary::QuickGelu,
     [](double x) {
       return sigmoid(1.702 * x) + 1.702 * x * sigmoid(1.702 * x) * sigmoid(-1.702 * x);
     },
     0, 2.5e-7},
    {Unary::Exp, [](double x) { return std::exp(x); }, 4 * kUnit, 0},
    {Unary::Erf, [](double x) { return 2 / std::sqrt(M_PI) * std::exp(-x * x); }, 0, 2.5e-7},
    {Unary::Negate, [](double) { return -1.0; }, 0, 0},
};

TEST_P(ElementwiseBackwardKernel, EveryDerivativeIsAccurate) {
  std::vector<float> x;
  for (int i = -60000; i <= 60000; ++i) x.push_back(static_cast<float>(i) / 3000.0f);
  for (int i = 0; i < 1000; ++i) x.push_back(std::exp2(-0.03f * static_cast<float>(i)));
  for (const Derivative& derivative : kDerivatives) {
    const std::vector<float> dx = slopes(derivative.op, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = derivative.exact(x[i]);
      ASSERT_NEAR(dx[i], exact, derivative.relative * std::abs(exact) + derivative.absolute)
          << "op " << static_cast<int>(derivative.op) << " at " << x[i];
    }
  }
}

TEST_P(ElementwiseBackwardKernel, LogSqrtAndReciprocalAreAccurateOverManySizes) {
  for (int exponent = -40; exponent <= 40; ++exponent)
    for (const float m : {1.0f, 1.3f, 1.9f}) {
      const float x = std::ldexp(m, exponent);
      EXPECT_NEAR(slope(Unary::Log, x), 1.0 / x, 2 * kUnit / x);
      EXPECT_NEAR(slope(Unary::Sqrt, x), 0.5 / std::sqrt(double{x}),
                  3 * kUnit / std::sqrt(double{x}));
      EXPECT_NEAR(slope(Unary::Reciprocal, -x), -1.0 / x / x, 4 * kUnit / x / x);
    }
}

TEST_P(ElementwiseBackwardKernel, CornersHaveNoSlope) {
  const std::vector<float> x = {-2.0f, -0.0f, 0.0f, 1e-40f, 3.0f};
  EXPECT_EQ(slopes(Unary::Relu, x, 7.0f), (std::vector<float>{0, 0, 0, 7, 7}));
  EXPECT_EQ(slopes(Unary::Abs, x, 7.0f), (std::vector<float>{-7, 0, 0, 7, 7}));
  EXPECT_EQ(slope(Unary::Relu, -1.0f, kInfinity), 0.0f);
}

TEST_P(ElementwiseBackwardKernel, SlopesReachTheirLimitsAtInfinity) {
  for (const Unary op : {Unary::GeluErf, Unary::GeluTanh, Unary::Silu, Unary::QuickGelu})
    for (const float x : {100.0f, 1e20f, 3e38f, kInfinity}) {
      EXPECT_EQ(slope(op, x), 1.0f) << static_cast<int>(op) << " at " << x;
      EXPECT_NEAR(slope(op, -x), 0.0f, 2e-9) << static_cast<int>(op) << " at " << -x;
    }
  for (const Unary op : {Unary::Tanh, Unary::Sigmoid, Unary::Erf})
    for (const float x : {-kInfinity, -1e20f, 3e38f, kInfinity})
      EXPECT_EQ(slope(op, x), 0.0f) << static_cast<int>(op) << " at " << x;
}

constexpr Unary kEveryUnary[] = {Unary::None, Unary::Relu,    Unary::GeluErf,   Unary::GeluTanh,
                                 Unary::Tanh, Unary::Sigmoid, Unary::Silu,      Unary::QuickGelu,
                                 Unary::Exp,  Unary::Erf,     Unary::Log,       Unary::Negate,
                                 Unary::Abs,  Unary::Sqrt,    Unary::Reciprocal};

TEST_P(ElementwiseBackwardKernel, NanOnEitherSideGoesThrough) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Unary op : kEveryUnary) {
    EXPECT_TRUE(std::isnan(slope(op, kNan))) << static_cast<int>(op);
    EXPECT_TRUE(std::isnan(slope(op, 1.0f, kNan))) << static_cast<int>(op);
  }
}

TEST_P(ElementwiseBackwardKernel, GivesAnElementTheSameBitsAnywhereAndInPlace) {
  const Matrix x = Matrix::random(1, 70, 0, 1);
  const Matrix dy = Matrix::random(1, 70, 0, 2);
  for (const Unary op : kEveryUnary)
    for (std::int64_t count = 0; count <= 70; count += 7) {
      Matrix dx(1, count);
      for (std::int64_t c = 0; c < count; ++c) dx(0, c) = dy(0, c);
      table().unary_backward(op, dx.data(), x.data(), count, dx.data());
      ASSERT_TRUE(dx.guards_are_intact());
      for (std::int64_t c = 0; c < count; ++c) {
        const float alone = slope(op, x(0, c), dy(0, c));
        ASSERT_EQ(std::memcmp(&dx(0, c), &alone, sizeof alone), 0) << static_cast<int>(op);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(, ElementwiseBackwardKernel, testing::ValuesIn(supported_isas()),
                         isa_name);

}  // namespace
}  // namespace lathe::engine
