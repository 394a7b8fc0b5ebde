#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

class WeightGradientKernel : public EveryIsa {
 protected:
  static WeightGradientArgs gradient(const Matrix& dy, const Matrix& x, Matrix& dw) {
    return {.rows = dy.rows(),
            .n = dy.columns(),
            .k = x.columns(),
            .dy = dy.data(),
            .dy_stride = dy.stride(),
            .x = x.data(),
            .x_stride = x.stride(),
            .dw = dw.data(),
            .dw_stride = dw.stride(),
            .accumulate = false};
  }
};

// A sum in order is off by at most rows + 3 roundings of a partial sum, each at most the sum of
// magnitudes.
void expect_gradient(const Matrix& dy, const Matrix& x, const Matrix& start, const Matrix& dw) {
  for (std::int64_t i = 0; i < dy.columns(); ++i)
    for (std::int64_t j = 0; j < x.columns(); ++j) {
      double exact = start(i, j);
      double magnitude = std::abs(exact);
      for (std::int64_t r = 0; r < dy.rows(); ++r) {
        const double term = double{dy(r, i)} * double{x(r, j)};
        exact += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(dw(i, j), exact, static_cast<double>(dy.rows() + 3) * kUnit * magnitude)
          << "element " << i << ", " << j;
    }
}

TEST_P(WeightGradientKernel, AgreesWithADoubleLoopForAwkwardSizes) {
  for (const std::int64_t rows : {1, 2, 42, 127, 128, 129, 300})
    for (const std::int64_t n : {1, 2, 6, 14, 15, 33})
      for (const std::int64_t k : {1, 16, 31, 32, 50}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << n << " by " << k);
        const Matrix dy = Matrix::random(rows, n, 3, 1);
        const Matrix x = Matrix::random(rows, k, 2, 2);
        Matrix dw(n, k, 5);
        dw.fill(std::numeric_limits<float>::quiet_NaN());
        table().weight_gradient(gradient(dy, x, dw));
        expect_gradient(dy, x, Matrix(n, k), dw);
        ASSERT_TRUE(dw.guards_are_intact());
      }
}

TEST_P(WeightGradientKernel, HasTheBitsOfOneCallWhenRowsComeInSeveral) {
  const Matrix dy = Matrix::random(200, 40, 1, 1);
  const Matrix x = Matrix::random(200, 70, 0, 2);
  Matrix whole(40, 70);
  table().weight_gradient(gradient(dy, x, whole));
  for (const std::int64_t step : {1, 42, 84, 128, 150}) {
    Matrix parts(40, 70);
    for (std::int64_t r = 0; r < 200; r += step) {
      WeightGradientArgs args = gradient(dy, x, parts);
      args.rows = std::min(step, 200 - r);
      args.dy = dy.row(r);
      args.x = x.row(r);
      args.accumulate = r > 0;
      table().weight_gradient(args);
    }
    EXPECT_TRUE(parts.has_same_bits(whole)) << "in steps of " << step;
  }
}

TEST_P(WeightGradientKernel, AddsToWhatIsThereWhenAsked) {
  const Matrix dy = Matrix::random(9, 17, 0, 1);
  const Matrix x = Matrix::random(9, 20, 0, 2);
  const Matrix start = Matrix::random(17, 20, 0, 3);
  Matrix dw = start;
  WeightGradientArgs args = gradient(dy, x, dw);
  args.accumulate = true;
  table().weight_gradient(args);
  expect_gradient(dy, x, start, dw);
}

TEST_P(WeightGradientKernel, IsZeroWithoutRows) {
  const Matrix nothing(0, 5);
  Matrix dw = Matrix::random(5, 5);
  table().weight_gradient(gradient(nothing, nothing, dw));
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(dw(i, j), 0.0f);
  WeightGradientArgs args = gradient(nothing, nothing, dw);
  args.accumulate = true;
  dw.fill(3.0f);
  table().weight_gradient(args);
  EXPECT_EQ(dw(4, 4), 3.0f);
}

TEST_P(WeightGradientKernel, TheInputGradientIsAProductWithTheWeightPackedTheOtherWay) {
  // dx[r, j] = sum over i of dy[r, i] weight[i, j].
  for (const auto& [rows, n, k] : {std::tuple{3, 5, 7}, {17, 40, 33}, {20, 128, 64}}) {
    const Matrix dy = Matrix::random(rows, n, 1, 1);
    const Matrix weight = Matrix::random(n, k, 0, 2);
    std::vector<float> packed(static_cast<std::size_t>(table().packed_size(k, n)));
    table().pack_b(weight.data(), k, n, 1, weight.stride(), packed.data());
    Matrix dx(rows, k, 2);
    table().gemm({.rows = rows,
                  .n = k,
                  .k = n,
                  .x = dy.data(),
                  .x_stride = dy.stride(),
                  .packed = packed.data(),
                  .bias = nullptr,
                  .activation = Unary::None,
                  .residual = nullptr,
                  .residual_stride = 0,
                  .y = dx.data(),
                  .y_stride = dx.stride(),
                  .accumulate = false});
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < k; ++j) {
        double exact = 0;
        double magnitude = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double term = double{dy(r, i)} * double{weight(i, j)};
          exact += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(dx(r, j), exact, (n + 3) * kUnit * magnitude);
      }
    EXPECT_TRUE(dx.guards_are_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(, WeightGradientKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
