#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class QuantizeBackwardKernel : public EveryIsa {};

TEST_P(QuantizeBackwardKernel, GatePassesWhatLiesBetweenTheEnds) {
  for (const std::int64_t count : {0, 1, 7, 16, 40, 333}) {
    const Matrix dy = Matrix::random(1, count, 0, 1);
    Matrix x = Matrix::random(1, count, 0, 2);
    if (count > 6) {
      x(0, 0) = -0.5f;  // the ends are inside
      x(0, 1) = 1.0f;
      x(0, 2) = std::nextafter(1.0f, 2.0f);
      x(0, 3) = std::nextafter(-0.5f, -1.0f);
      x(0, 4) = kNan;
      x(0, 5) = std::numeric_limits<float>::infinity();
    }
    Matrix dx(1, count);
    table().gate(dy.data(), x.data(), -0.5f, 1.0f, count, dx.data());
    for (std::int64_t c = 0; c < count; ++c)
      ASSERT_EQ(dx(0, c), x(0, c) < -0.5f || x(0, c) > 1.0f ? 0.0f : dy(0, c)) << c;
    ASSERT_TRUE(dx.guards_are_intact());
    Matrix in_place = dy;
    table().gate(in_place.data(), x.data(), -0.5f, 1.0f, count, in_place.data());
    ASSERT_TRUE(in_place.has_same_bits(dx));
  }
}

TEST_P(QuantizeBackwardKernel, LearnedStepAgreesWithADoubleLoop) {
  constexpr float kScale = 0.15f, kZero = 3, kLow = 0, kHigh = 15;
  for (const std::int64_t count : {0, 1, 7, 16, 40, 333}) {
    const Matrix dy = Matrix::random(1, count, 0, 1), x = Matrix::random(1, count, 0, 2);
    Matrix y(1, count), dx(1, count);
    double sum = 0, size = 0;
    for (std::int64_t c = 0; c < count; ++c) {
      const double place = double{x(0, c)} / double{kScale} + double{kZero};
      const double code = std::fmin(std::fmax(std::nearbyint(place), kLow), kHigh);
      y(0, c) = static_cast<float>((code - kZero) * double{kScale});
      const bool is_inside = place >= kLow && place <= kHigh;
      const double term =
          double{dy(0, c)} * (double{y(0, c)} - (is_inside ? double{x(0, c)} : 0.0));
      sum += term / double{kScale};
      size += std::fabs(dy(0, c)) * (std::fabs(x(0, c)) + std::fabs(y(0, c))) / double{kScale};
    }
    const auto run = [&](const Matrix& gradient, Matrix& into) {
      return table().learned_step({.count = count,
                                   .dy = gradient.data(),
                                   .x = x.data(),
                                   .y = y.data(),
                                   .scale = kScale,
                                   .zero = kZero,
                                   .minimum = kLow,
                                   .maximum = kHigh,
                                   .dx = into.data()});
    };
    const float ds = run(dy, dx);
    // Each of at most 333 / lanes additions is off by a rounding of the running sum.
    EXPECT_NEAR(ds, sum, 40 * kUnit * size);
    for (std::int64_t c = 0; c < count; ++c) {
      const double place = double{x(0, c)} / double{kScale} + double{kZero};
      ASSERT_EQ(dx(0, c), place < kLow || place > kHigh ? 0.0f : dy(0, c)) << c;
    }
    ASSERT_TRUE(dx.guards_are_intact());
    Matrix in_place = dy;
    EXPECT_EQ(run(in_place, in_place), ds);
    ASSERT_TRUE(in_place.has_same_bits(dx));
  }
}

TEST_P(QuantizeBackwardKernel, LearnedStepShowsANan) {
  const Matrix dy = Matrix::random(1, 20, 0, 1);
  Matrix x = Matrix::random(1, 20, 0, 2), dx(1, 20);
  x(0, 11) = kNan;
  const float ds = table().learned_step({.count = 20,
                                         .dy = dy.data(),
                                         .x = x.data(),
                                         .y = x.data(),
                                         .scale = 1,
                                         .zero = 0,
                                         .minimum = -7,
                                         .maximum = 7,
                                         .dx = dx.data()});
  EXPECT_TRUE(std::isnan(ds));
  EXPECT_TRUE(dx.has_same_bits(dy));
}

INSTANTIATE_TEST_SUITE_P(, QuantizeBackwardKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
