#include <cmath>
#include <limits>
#include <tuple>

#include "lathe/engine/cpu/exact_product.h"
#include "lathe/engine/cpu/product_partition.h"

namespace lathe::engine {
namespace {

class GemmKernel : public EveryIsa {
 protected:
  std::vector<float> packed(const Matrix& weight) const { return packed_weight(table(), weight); }
};

// A sum of k products in order has an error of at most k + 1 roundings (a product and an addition
// where they are not fused) of a partial sum, each at most the sum of magnitudes.
double dot_bound(std::int64_t k, double magnitude) {
  return static_cast<double>(k + 3) * kUnit * magnitude;
}

TEST_P(GemmKernel, AgreesWithADoubleLoopForAwkwardSizes) {
  const std::tuple<int, int, int> shapes[] = {
      {1, 1, 1},     {2, 3, 1},     {3, 7, 5},     {4, 8, 9},     {5, 15, 16},  {6, 16, 17},
      {7, 17, 2},    {9, 31, 33},   {13, 32, 64},  {14, 33, 70},  {15, 47, 31}, {16, 48, 8},
      {27, 49, 3},   {28, 63, 12},  {29, 64, 70},  {33, 100, 67}, {31, 2, 128}, {33, 128, 128},
      {8, 384, 128}, {8, 512, 128}, {8, 128, 512},
  };
  for (const auto& [rows, n, k] : shapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k);
    const Matrix x = Matrix::random(rows, k, 3, 1);
    const Matrix weight = Matrix::random(n, k, 5, 2);
    Matrix y(rows, n, 7);
    const auto right = packed(weight);
    table().gemm(plain_product(x, right, y));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < n; ++j) {
        const ExactSum exact = exact_dot(x, r, weight, j);
        ASSERT_NEAR(y(r, j), exact.value, dot_bound(k, exact.magnitude)) << r << "," << j;
      }
    EXPECT_TRUE(y.guards_are_intact());
  }
}

TEST_P(GemmKernel, CoversEverySmallNumberOfRowsAndColumns) {
  constexpr std::int64_t kDepth = 3;
  for (std::int64_t rows = 1; rows <= 33; ++rows)
    for (std::int64_t n = 1; n <= 70; n += rows % 2 + 1) {
      const Matrix x = Matrix::random(rows, kDepth, 0, 1);
      const Matrix weight = Matrix::random(n, kDepth, 0, 2);
      Matrix y(rows, n, 1);
      const auto right = packed(weight);
      table().gemm(plain_product(x, right, y));
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < n; ++j) {
          const ExactSum exact = exact_dot(x, r, weight, j);
          ASSERT_NEAR(y(r, j), exact.value, dot_bound(kDepth, exact.magnitude))
              << rows << " x " << n << " at " << r << "," << j;
        }
      ASSERT_TRUE(y.guards_are_intact()) << rows << " x " << n;
    }
}

TEST_P(GemmKernel, AgreesWithADoubleLoopWhenTheWeightsExceedTheCache) {
  const Matrix x = Matrix::random(150, 700, 1, 1);
  const Matrix weight = Matrix::random(300, 700, 0, 2);
  Matrix y(150, 300, 1);
  const auto right = packed(weight);
  table().gemm(plain_product(x, right, y));
  for (std::int64_t r = 0; r < 150; ++r)
    for (std::int64_t j = 0; j < 300; j += 7) {
      const ExactSum exact = exact_dot(x, r, weight, j);
      ASSERT_NEAR(y(r, j), exact.value, dot_bound(700, exact.magnitude)) << r << "," << j;
    }
  EXPECT_TRUE(y.guards_are_intact());
}

// Depths of one piece and of several, strides that share the sets of a cache and others.
TEST_P(GemmKernel, GivesABlockTheBitsOfTheWholeProduct) {
  const std::tuple<int, int, int> shapes[] = {
      {1, 1, 1}, {3, 40, 5}, {17, 200, 512}, {15, 65, 768}, {17, 210, 1536}, {5, 33, 1700},
  };
  for (const auto& [rows, n, k] : shapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k);
    const Matrix x = Matrix::random(rows, k, 0, 1);
    const Matrix weight = Matrix::random(n, k, 0, 2);
    const Matrix bias = Matrix::random(1, n, 0, 3);
    const Matrix residual = Matrix::random(rows, n, 6, 4);
    const auto right = packed(weight);
    for (const bool is_finished : {false, true}) {
      Matrix whole(rows, n, 2), in_blocks(rows, n, 2);
      const auto arguments = [&](Matrix& y) {
        GemmArgs args = plain_product(x, right, y);
        args.bias = bias.data();
        if (!is_finished) return args;
        args.activation = Unary::GeluErf;
        args.residual = residual.data();
        args.residual_stride = residual.stride();
        return args;
      };
      table().gemm(arguments(whole));
      const Partition cut({rows, n, k}, table().gemm_grain(), (rows + 6) / 7, (n + 99) / 100);
      std::vector<float> scratch(
          static_cast<std::size_t>(table().gemm_block_scratch(cut.largest().rows, n)),
          std::numeric_limits<float>::quiet_NaN());
      for (std::int64_t i = 0; i < cut.count(); ++i) {
        const Block block = cut.block(i);
        GemmArgs args = arguments(in_blocks);
        args.rows = block.rows;
        args.n = block.columns;
        args.x += block.row * args.x_stride;
        args.packed += block.column * args.k;
        args.bias += block.column;
        if (is_finished) args.residual += block.row * args.residual_stride + block.column;
        args.y += block.row * args.y_stride + block.column;
        table().gemm_block(args, scratch.data());
      }
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < n; ++j)
          ASSERT_EQ(in_blocks(r, j), whole(r, j)) << r << "," << j;
      EXPECT_TRUE(in_blocks.guards_are_intact());
    }
  }
}

TEST_P(GemmKernel, PacksAMatrixTheSameFromEveryLayout) {
  const std::int64_t n = 37;
  const std::int64_t k = 21;
  const Matrix weight = Matrix::random(n, k, 2);
  Matrix transposed(k, n, 4);
  Matrix spread(n, 3 * k);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t p = 0; p < k; ++p) transposed(p, j) = spread(j, 3 * p) = weight(j, p);
  std::vector<float> from_transposed(static_cast<std::size_t>(table().packed_size(n, k)), 1.0f);
  std::vector<float> from_spread(from_transposed.size(), 2.0f);
  table().pack_b(transposed.data(), n, k, 1, transposed.stride(), from_transposed.data());
  table().pack_b(spread.data(), n, k, spread.stride(), 3, from_spread.data());
  EXPECT_EQ(packed(weight), from_transposed);
  EXPECT_EQ(packed(weight), from_spread);
}

TEST_P(GemmKernel, AddsBiasThenActivatesThenAddsTheResidual) {
  const Matrix x = Matrix::random(17, 40, 0, 1);
  const Matrix weight = Matrix::random(45, 40, 0, 2);
  const Matrix bias = Matrix::random(1, 45, 0, 3);
  const Matrix residual = Matrix::random(17, 45, 6, 4);
  Matrix y(17, 45, 2);
  const auto right = packed(weight);
  GemmArgs args = plain_product(x, right, y);
  args.bias = bias.data();
  args.activation = Unary::Relu;
  args.residual = residual.data();
  args.residual_stride = residual.stride();
  table().gemm(args);
  for (std::int64_t r = 0; r < 17; ++r)
    for (std::int64_t j = 0; j < 45; ++j) {
      const ExactSum dot = exact_dot(x, r, weight, j);
      const double exact = std::max(dot.value + bias(0, j), 0.0) + residual(r, j);
      // Two more roundings, of the sums with the bias and with the residual.
      const double magnitude = dot.magnitude + std::abs(bias(0, j)) + std::abs(residual(r, j));
      ASSERT_NEAR(y(r, j), exact, dot_bound(40 + 2, magnitude));
    }
  EXPECT_TRUE(y.guards_are_intact());
}

TEST_P(GemmKernel, ActivatesExactlyAsTheUnaryKernel) {
  const Matrix x = Matrix::random(9, 12, 0, 1);
  const Matrix weight = Matrix::random(35, 12, 0, 2);
  const auto right = packed(weight);
  Matrix linear(9, 35);
  table().gemm(plain_product(x, right, linear));
  for (const Unary activation : {Unary::Relu, Unary::GeluErf, Unary::GeluTanh, Unary::Tanh,
                                 Unary::Sigmoid, Unary::Silu, Unary::QuickGelu}) {
    Matrix fused(9, 35, 1);
    GemmArgs args = plain_product(x, right, fused);
    args.activation = activation;
    table().gemm(args);
    Matrix separate(9, 35);
    table().unary(activation, linear.data(), 9 * 35, separate.data());
    EXPECT_TRUE(separate.has_same_bits(fused)) << static_cast<int>(activation);
  }
}

TEST_P(GemmKernel, StartsFromYWhenAccumulating) {
  const Matrix x = Matrix::random(15, 20, 0, 1);
  const Matrix weight = Matrix::random(33, 20, 0, 2);
  const Matrix start = Matrix::random(15, 33, 0, 3);
  Matrix y = start;
  const auto right = packed(weight);
  GemmArgs args = plain_product(x, right, y);
  args.accumulate = true;
  table().gemm(args);
  for (std::int64_t r = 0; r < 15; ++r)
    for (std::int64_t j = 0; j < 33; ++j) {
      const ExactSum dot = exact_dot(x, r, weight, j);
      ASSERT_NEAR(y(r, j), start(r, j) + dot.value,
                  dot_bound(20, dot.magnitude + std::abs(start(r, j))));
    }
}

TEST_P(GemmKernel, ActivatesTheAccumulatedSum) {
  const Matrix x = Matrix::random(15, 20, 0, 1);
  const Matrix weight = Matrix::random(33, 20, 0, 2);
  const Matrix start = Matrix::random(15, 33, 2, 3);
  const auto right = packed(weight);
  Matrix sums = start;
  GemmArgs args = plain_product(x, right, sums);
  args.accumulate = true;
  table().gemm(args);
  Matrix activated = start;
  args.y = activated.data();
  args.activation = Unary::Relu;
  table().gemm(args);
  for (std::int64_t r = 0; r < 15; ++r)
    for (std::int64_t j = 0; j < 33; ++j) ASSERT_EQ(activated(r, j), std::max(sums(r, j), 0.0f));
  EXPECT_TRUE(activated.guards_are_intact());
}

TEST_P(GemmKernel, AddsAResidualThatIsYItself) {
  const Matrix x = Matrix::random(5, 8, 0, 1);
  const Matrix weight = Matrix::random(34, 8, 0, 2);
  const Matrix residual = Matrix::random(5, 34, 0, 3);
  const auto right = packed(weight);
  Matrix apart(5, 34);
  GemmArgs args = plain_product(x, right, apart);
  args.residual = residual.data();
  args.residual_stride = residual.stride();
  table().gemm(args);
  Matrix in_place = residual;
  args.y = in_place.data();
  args.residual = in_place.data();
  table().gemm(args);
  EXPECT_TRUE(in_place.has_same_bits(apart));
}

TEST_P(GemmKernel, GivesARowTheSameBitsInAnyCompany) {
  const Matrix x = Matrix::random(61, 37, 3, 1);
  const Matrix weight = Matrix::random(50, 37, 0, 2);
  const Matrix bias = Matrix::random(1, 50, 0, 3);
  const auto right = packed(weight);
  Matrix whole(61, 50);
  GemmArgs args = plain_product(x, right, whole);
  args.bias = bias.data();
  args.activation = Unary::GeluErf;
  table().gemm(args);
  for (std::int64_t step = 1; step <= 31; step += 3) {
    Matrix parts(61, 50);
    for (std::int64_t r = 0; r < 61; r += step) {
      GemmArgs part = args;
      part.rows = std::min(step, 61 - r);
      part.x = x.row(r);
      part.y = parts.row(r);
      table().gemm(part);
    }
    EXPECT_TRUE(parts.has_same_bits(whole)) << "in steps of " << step;
  }
}

TEST_P(GemmKernel, ANanReachesItsRowAndNoOther) {
  Matrix x = Matrix::random(16, 10, 0, 1);
  x(3, 7) = std::numeric_limits<float>::quiet_NaN();
  const Matrix weight = Matrix::random(19, 10, 0, 2);
  Matrix y(16, 19);
  const auto right = packed(weight);
  table().gemm(plain_product(x, right, y));
  for (std::int64_t r = 0; r < 16; ++r)
    for (std::int64_t j = 0; j < 19; ++j) EXPECT_EQ(std::isnan(y(r, j)), r == 3);
}

TEST_P(GemmKernel, WritesBiasAloneWhenThereIsNothingToSum) {
  const Matrix x(3, 0, 1);
  const Matrix bias = Matrix::random(1, 5);
  Matrix y(3, 5);
  const std::vector<float> nothing(1);
  GemmArgs args = plain_product(x, nothing, y);
  args.bias = bias.data();
  table().gemm(args);
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(y(r, j), bias(0, j));
  args.rows = 0;
  table().gemm(args);
}

INSTANTIATE_TEST_SUITE_P(, GemmKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
