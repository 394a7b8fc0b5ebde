#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ElementwiseKernel : public EveryIsa {
 protected:
  std::vector<float> apply(Unary op, const std::vector<float>& x) const {
    std::vector<float> y(x.size());
    table().unary(op, x.data(), static_cast<std::int64_t>(x.size()), y.data());
    return y;
  }
  float apply(Unary op, float x) const { return apply(op, std::vector<float>{x})[0]; }
};

// Evenly spaced numbers of an interval, and the same many spread over the magnitudes below 1.
std::vector<float> sweep(float low, float high) {
  constexpr int kPoints = 100000;
  std::vector<float> points;
  for (int i = 0; i <= kPoints; ++i) points.push_back(low + (high - low) * (float(i) / kPoints));
  for (int i = 0; i <= kPoints; ++i) {
    const float small = std::exp2(-30.0f * float(i) / kPoints);
    if (low < -1) points.push_back(-small);
    if (high > 1) points.push_back(small);
  }
  return points;
}

// The distance between floats at the size of `value`.
double ulp(double value) {
  return std::ldexp(1.0, std::max(std::ilogb(static_cast<float>(value)), -126) - 23);
}

double exact_gelu(double x) {
  return x / 2 * std::erfc(-x / std::sqrt(2.0));
}

TEST_P(ElementwiseKernel, ExpIsWithinTwoUlp) {
  // One for the reduced argument and the polynomial, one where multiply and add are not fused.
  const std::vector<float> x = sweep(-87.0f, 88.0f);
  const std::vector<float> y = apply(Unary::Exp, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double{x[i]});
    ASSERT_NEAR(y[i], exact, 2 * ulp(exact)) << x[i];
  }
}

TEST_P(ElementwiseKernel, ExpUnderflowsToZeroAndOverflowsToInfinity) {
  EXPECT_EQ(apply(Unary::Exp, 0.0f), 1.0f);
  EXPECT_EQ(apply(Unary::Exp, -kInfinity), 0.0f);
  EXPECT_EQ(apply(Unary::Exp, -200.0f), 0.0f);
  EXPECT_EQ(apply(Unary::Exp, -87.31f), 0.0f);
  EXPECT_NEAR(apply(Unary::Exp, -87.29f), std::exp(-87.29f), 4e-45);
  EXPECT_EQ(apply(Unary::Exp, 88.8f), kInfinity);
  EXPECT_EQ(apply(Unary::Exp, kInfinity), kInfinity);
}

TEST_P(ElementwiseKernel, ErfIsWithinAnAbsoluteAndTanhWithinARelativeBound) {
  const std::vector<float> x = sweep(-10.0f, 10.0f);
  const std::vector<float> erf = apply(Unary::Erf, x);
  const std::vector<float> tanh = apply(Unary::Tanh, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    // Two units in the last place of 1, and relative where the odd polynomial is used.
    const double exact = std::erf(double{x[i]});
    ASSERT_NEAR(erf[i], exact, std::min(1.2e-7, 3e-7 * std::abs(exact))) << x[i];
    ASSERT_NEAR(tanh[i], std::tanh(double{x[i]}), 4 * kUnit * std::abs(std::tanh(double{x[i]})))
        << x[i];
  }
  EXPECT_EQ(apply(Unary::Erf, kInfinity), 1.0f);
  EXPECT_EQ(apply(Unary::Erf, -30.0f), -1.0f);
  EXPECT_EQ(apply(Unary::Tanh, -kInfinity), -1.0f);
  EXPECT_EQ(apply(Unary::Tanh, 50.0f), 1.0f);
}

TEST_P(ElementwiseKernel, SigmoidSiluAndTheGelusAreAccurate) {
  const std::vector<float> x = sweep(-20.0f, 20.0f);
  const std::vector<float> sigmoid = apply(Unary::Sigmoid, x);
  const std::vector<float> silu = apply(Unary::Silu, x);
  const std::vector<float> quick = apply(Unary::QuickGelu, x);
  const std::vector<float> gelu = apply(Unary::GeluErf, x);
  const std::vector<float> tanh_gelu = apply(Unary::GeluTanh, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = x[i];
    const double s = 1 / (1 + std::exp(-a));
    const double scaled = std::max(1.0, std::abs(a));
    ASSERT_NEAR(sigmoid[i], s, 6 * kUnit * s) << a;
    ASSERT_NEAR(silu[i], a * s, 6 * kUnit * std::abs(a * s)) << a;
    // The argument of exp is rounded before exp sees it: an absolute error of its own size.
    ASSERT_NEAR(quick[i], a / (1 + std::exp(-1.702 * a)), 2e-7 * scaled) << a;
    ASSERT_NEAR(gelu[i], exact_gelu(a), 1.5e-7 * scaled) << a;
    const double z = std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a);
    ASSERT_NEAR(tanh_gelu[i], a / 2 * (1 + std::tanh(z)), 2e-7 * scaled) << a;
  }
}

TEST_P(ElementwiseKernel, LogIsAccurateOverAllSizes) {
  std::vector<float> x;
  for (int exponent = -149; exponent < 128; ++exponent)
    for (float m = 1.0f; m < 2.0f; m += 0.01f) x.push_back(std::ldexp(m, exponent));
  for (float a = 0.5f; a < 2.0f; a += 1e-5f) x.push_back(a);
  const std::vector<float> y = apply(Unary::Log, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::log(double{x[i]});
    ASSERT_NEAR(y[i], exact, 3 * kUnit * std::abs(exact)) << x[i];
  }
  EXPECT_EQ(apply(Unary::Log, 0.0f), -kInfinity);
  EXPECT_EQ(apply(Unary::Log, kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(apply(Unary::Log, -1.0f)));
}

TEST_P(ElementwiseKernel, ExactFunctionsAreExact) {
  const std::vector<float> x = {0.0f, -0.0f, 1.5f, -2.25f, 3e38f, -1e-40f, 7.0f};
  for (const float a : x) {
    EXPECT_EQ(apply(Unary::None, a), a);
    EXPECT_EQ(apply(Unary::Relu, a), a > 0 ? a : 0.0f);
    EXPECT_EQ(apply(Unary::Negate, a), -a);
    EXPECT_EQ(apply(Unary::Abs, a), std::fabs(a));
    EXPECT_EQ(apply(Unary::Reciprocal, a), 1.0f / a);
    if (a >= 0) {
      EXPECT_EQ(apply(Unary::Sqrt, a), std::sqrt(a));
    }
  }
  EXPECT_TRUE(std::isnan(apply(Unary::Sqrt, -1.0f)));
}

constexpr Unary kEveryUnary[] = {Unary::None, Unary::Relu,    Unary::GeluErf,   Unary::GeluTanh,
                                 Unary::Tanh, Unary::Sigmoid, Unary::Silu,      Unary::QuickGelu,
                                 Unary::Exp,  Unary::Erf,     Unary::Log,       Unary::Negate,
                                 Unary::Abs,  Unary::Sqrt,    Unary::Reciprocal};

// With any low bits, such as computing with exponents as integers would take for one.
TEST_P(ElementwiseKernel, EveryUnaryPassesNanOn) {
  for (const Unary op : kEveryUnary)
    for (const std::uint32_t bits : {0x7fc00000u, 0x7fc00123u, 0xffc001ffu, 0x7fffffffu}) {
      const float result = apply(op, std::bit_cast<float>(bits));
      EXPECT_TRUE(std::isnan(result)) << static_cast<int>(op) << " of " << std::hex << bits;
    }
}

TEST_P(ElementwiseKernel, UnaryGivesAnElementTheSameBitsAnywhereAndWritesNothingElse) {
  const Matrix x = Matrix::random(1, 70);
  for (const Unary op : kEveryUnary)
    for (std::int64_t count = 0; count <= 70; count += 3) {
      Matrix y(1, count);
      table().unary(op, x.data(), count, y.data());
      ASSERT_TRUE(y.guards_are_intact());
      for (std::int64_t c = 0; c < count; ++c) {
        const float alone = apply(op, x(0, c));
        ASSERT_EQ(std::memcmp(&y(0, c), &alone, sizeof alone), 0) << static_cast<int>(op);
      }
    }
}

TEST_P(ElementwiseKernel, BinaryCombinesRowsARepeatedRowAndRepeatedNumbers) {
  const std::pair<Binary, std::function<float(float, float)>> ops[] = {
      {Binary::Add, [](float a, float b) { return a + b; }},
      {Binary::Subtract, [](float a, float b) { return a - b; }},
      {Binary::Multiply, [](float a, float b) { return a * b; }},
      {Binary::Divide, [](float a, float b) { return a / b; }},
      {Binary::Min, [](float a, float b) { return a < b ? a : b; }},
      {Binary::Max, [](float a, float b) { return a > b ? a : b; }},
  };
  for (const std::int64_t n : {1, 5, 16, 19, 40}) {
    const Matrix a = Matrix::random(3, n, 2, 1);
    const Matrix b = Matrix::random(3, n, 1, 2);
    // A matrix, one row for all, one number for each row, one number for all.
    const auto operands = [](const Matrix& m) {
      return std::vector<Operand>{
          {m.data(), m.stride(), 1}, {m.data(), 0, 1}, {m.data(), m.stride(), 0}, {m.data(), 0, 0}};
    };
    for (const auto& [op, exact] : ops)
      for (const Operand& left : operands(a))
        for (const Operand& right : operands(b)) {
          Matrix y(3, n, 4);
          table().binary({.op = op,
                          .rows = 3,
                          .n = n,
                          .a = left,
                          .b = right,
                          .y = y.data(),
                          .y_stride = y.stride()});
          for (std::int64_t r = 0; r < 3; ++r)
            for (std::int64_t c = 0; c < n; ++c)
              ASSERT_EQ(y(r, c), exact(left.data[r * left.row_stride + c * left.step],
                                       right.data[r * right.row_stride + c * right.step]));
          ASSERT_TRUE(y.guards_are_intact());
        }
  }
}

TEST_P(ElementwiseKernel, MinAndMaxGiveNanForEitherArgument) {
  const float a[] = {kNan, 1.0f};
  const float b[] = {1.0f, kNan};
  for (const Binary op : {Binary::Min, Binary::Max}) {
    float y[2];
    table().binary(
        {.op = op, .rows = 1, .n = 2, .a = {a, 2, 1}, .b = {b, 2, 1}, .y = y, .y_stride = 2});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_TRUE(std::isnan(y[1]));
  }
}

TEST_P(ElementwiseKernel, EmbeddingSumAddsTheRowsInOrder) {
  for (const std::int64_t n : {1, 16, 37, 128})
    for (int num_tables = 1; num_tables <= kMaxEmbeddingTables; ++num_tables) {
      const Matrix words = Matrix::random(50, n, 0, 1);
      const Matrix positions = Matrix::random(4, n, 0, 2);
      const Matrix types = Matrix::random(2, n, 0, 3);
      const std::int32_t ids[3][4] = {{49, 0, 7, 7}, {0, 1, 2, 3}, {0, 0, 1, 1}};
      Matrix y(4, n, 3);
      table().embedding_sum({.rows = 4,
                             .n = n,
                             .num_tables = num_tables,
                             .tables = {words.data(), positions.data(), types.data()},
                             .ids = {ids[0], ids[1], ids[2]},
                             .y = y.data(),
                             .y_stride = y.stride()});
      for (std::int64_t r = 0; r < 4; ++r)
        for (std::int64_t c = 0; c < n; ++c) {
          float expected = words(ids[0][r], c);
          if (num_tables > 1) expected += positions(ids[1][r], c);
          if (num_tables > 2) expected += types(ids[2][r], c);
          ASSERT_EQ(y(r, c), expected);
        }
      EXPECT_TRUE(y.guards_are_intact());
    }
}

INSTANTIATE_TEST_SUITE_P(, ElementwiseKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
