#include "lathe/engine/cpu/split_kernels.h"

#include <cmath>
#include <limits>
#include <random>
#include <string_view>

#include "lathe/core/graph_text.h"
#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/code_weight.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/exact_product.h"
#include "lathe/engine/cpu/product_partition.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

class EverySplit : public testing::TestWithParam<const SplitKernels*> {
 protected:
  const SplitKernels& table() const { return *GetParam(); }

  std::vector<float> packed(const Matrix& weight) const {
    std::vector<float> result(
        static_cast<std::size_t>(table().packed_size(weight.rows(), weight.columns())), NAN);
    table().pack(weight.data(), weight.rows(), weight.columns(), result.data());
    return result;
  }
  void multiply(SplitArgs args) const {
    const AlignedBuffer scratch(table().scratch_bytes(args.rows, args.n));
    std::memset(scratch.data(), 0xff, static_cast<std::size_t>(scratch.size()));
    args.scratch = scratch.data();
    table().multiply(args);
  }
};

// Operands where they lie: a weight [n, k] as it is, a product's second operand [k, n], and that
// with the rows of the first one side by side too, [k, rows].
enum class Lying { Columns, Rows, BothAcross };
constexpr Lying kEveryLying[] = {Lying::Columns, Lying::Rows, Lying::BothAcross};

Matrix turned(const Matrix& matrix, std::int64_t gap) {
  Matrix result(matrix.columns(), matrix.rows(), gap);
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    for (std::int64_t c = 0; c < matrix.columns(); ++c) result(c, r) = matrix(r, c);
  return result;
}

// x . weight^T from where they lie.
class LyingProduct {
 public:
  LyingProduct(Lying lying, const Matrix& x, const Matrix& weight)
      : lying_(lying), x_(x), weight_(weight), x_across_(turned(x, 3)), b_(turned(weight, 7)) {}

  SplitArgs args(Matrix& y, const Block& block) const {
    SplitArgs args = plain_product<SplitArgs>(x_, {}, y);
    args.rows = block.rows;
    args.n = block.columns;
    args.packed = nullptr;
    args.x += block.row * args.x_stride;
    if (lying_ == Lying::BothAcross) {
      args.x = x_across_.data() + block.row;
      args.x_stride = 1;
      args.x_step = x_across_.stride();
    }
    const bool are_columns = lying_ == Lying::Columns;
    args.b = are_columns ? weight_.row(block.column) : b_.data() + block.column;
    args.b_stride_n = are_columns ? weight_.stride() : 1;
    args.b_stride_k = are_columns ? 1 : b_.stride();
    args.y += block.row * args.y_stride + block.column;
    return args;
  }

 private:
  Lying lying_;
  const Matrix &x_, &weight_;
  Matrix x_across_, b_;
};

struct Shape {
  std::int64_t rows, n, k;
};
constexpr Shape kShapes[] = {{0, 5, 32},   {1, 1, 32},    {5, 33, 64},
                             {17, 70, 96}, {40, 31, 800}, {70, 65, 160}};

// The product of x and weight^T by the dense kernel of floats.
Matrix float_product(const Matrix& x, const Matrix& weight) {
  const Kernels& floats = kernels(Isa::Avx512);
  const std::vector<float> packed = packed_weight(floats, weight);
  Matrix y(x.rows(), weight.rows());
  floats.gemm(plain_product(x, packed, y));
  return y;
}

// Six products for each element of k are exact, and each is added once, in any order; what is left
// out is at most 2^-23 of the product, little more than two units.
TEST_P(EverySplit, AgreesWithADoubleLoop) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.n << " x " << shape.k);
    const Matrix x = Matrix::random(shape.rows, shape.k, 5, 1);
    const Matrix weight = Matrix::random(shape.n, shape.k, 0, 2);
    const Matrix bias = Matrix::random(1, shape.n, 0, 3);
    const std::vector<float> right = packed(weight);
    Matrix y(shape.rows, shape.n, 3);
    SplitArgs args = plain_product<SplitArgs>(x, right, y);
    args.bias = bias.data();
    multiply(args);
    for (std::int64_t r = 0; r < shape.rows; ++r)
      for (std::int64_t j = 0; j < shape.n; ++j) {
        const ExactSum dot = exact_dot(x, r, weight, j);
        const double magnitude = dot.magnitude + std::abs(bias(0, j));
        const double roundings = 6 * static_cast<double>(shape.k) + 3.5;
        ASSERT_NEAR(y(r, j), dot.value + bias(0, j), roundings * kUnit * magnitude)
            << r << "," << j;
      }
    EXPECT_TRUE(y.guards_are_intact());
  }
}

// A processor's tiles add 32 elements to each other before they add them to the sum, so that fewer
// roundings are of large numbers. The emulation adds all six products one by one: sqrt(6) times the
// error of one.
TEST_P(EverySplit, IsAsNearTheTruthAsTheKernelOfFloats) {
  const Shape shape{32, 64, 768};
  const Matrix x = Matrix::random(shape.rows, shape.k, 0, 1);
  const Matrix weight = Matrix::random(shape.n, shape.k, 0, 2);
  const std::vector<float> right = packed(weight);
  Matrix y(shape.rows, shape.n);
  multiply(plain_product<SplitArgs>(x, right, y));
  const Matrix floats = float_product(x, weight);
  double error = 0, float_error = 0;
  for (std::int64_t r = 0; r < shape.rows; ++r)
    for (std::int64_t j = 0; j < shape.n; ++j) {
      const double exact = exact_dot(x, r, weight, j).value;
      error += std::pow(y(r, j) - exact, 2);
      float_error += std::pow(floats(r, j) - exact, 2);
    }
  const bool is_emulated = std::string_view(table().name) != "split_amx";
  EXPECT_LE(std::sqrt(error), (is_emulated ? 3 : 1) * std::sqrt(float_error));
}

TEST_P(EverySplit, GivesABlockTheBitsOfTheWhole) {
  for (const Shape& shape : kShapes) {
    const Matrix x = Matrix::random(shape.rows, shape.k, 0, 1);
    const Matrix weight = Matrix::random(shape.n, shape.k, 0, 2);
    const std::vector<float> right = packed(weight);
    Matrix whole(shape.rows, shape.n), in_blocks(shape.rows, shape.n);
    multiply(plain_product<SplitArgs>(x, right, whole));
    const Partition cut({shape.rows, shape.n, shape.k}, table().grain(), (shape.rows + 4) / 5,
                        (shape.n + 39) / 40);
    for (std::int64_t i = 0; i < cut.count(); ++i) {
      const Block block = cut.block(i);
      SplitArgs args = plain_product<SplitArgs>(x, right, in_blocks);
      args.rows = block.rows;
      args.n = block.columns;
      args.x += block.row * args.x_stride;
      args.packed += table().packed_size(block.column, shape.k);
      args.y += block.row * args.y_stride + block.column;
      multiply(args);
    }
    EXPECT_TRUE(in_blocks.has_same_bits(whole));
  }
}

TEST_P(EverySplit, GivesRowsThatWereSplitAheadTheSameBits) {
  for (const Shape& shape : {Shape{1, 40, 32}, {70, 70, 800}, {100, 33, 384}}) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.n << " x " << shape.k);
    Matrix x = Matrix::random(shape.rows, shape.k, 0, 1);
    x(shape.rows - 1, 7) = std::numeric_limits<float>::infinity();
    const Matrix weight = Matrix::random(shape.n, shape.k, 0, 2);
    const std::vector<float> right = packed(weight);
    Matrix expected(shape.rows, shape.n), y(shape.rows, shape.n, 3);
    multiply(plain_product<SplitArgs>(x, right, expected));

    const std::int64_t grain = table().grain().rows;
    const Partition cut({shape.rows, shape.n, shape.k}, table().grain(),
                        (shape.rows + grain - 1) / grain, 2, true);
    for (std::int64_t i = 0; i < cut.count(); ++i) {
      const Block block = cut.block(i);
      const AlignedBuffer parts(table().parts_bytes(block.rows, shape.k));
      std::memset(parts.data(), 0xff, static_cast<std::size_t>(parts.size()));
      SplitArgs args = plain_product<SplitArgs>(x, right, y);
      args.rows = block.rows;
      args.n = block.columns;
      args.x += block.row * args.x_stride;
      args.packed += table().packed_size(block.column, shape.k);
      args.y += block.row * args.y_stride + block.column;
      args.parts = parts.data();
      args.next_column = -block.column;
      table().split_rows(args.x, args.x_stride, block.rows, shape.k, parts.data());
      multiply(args);
    }
    EXPECT_TRUE(y.has_same_bits(expected));
    EXPECT_TRUE(y.guards_are_intact());
  }
}

constexpr std::int64_t kStreamedStride = 80;  // whole cache lines

// The same products are added up in the same order.
TEST_P(EverySplit, GivesOperandsWhereTheyLieTheBitsOfPackedOnes) {
  for (const Shape& shape : kShapes)
    for (const Lying lying : kEveryLying) {
      SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.n << " x " << shape.k
                                      << " lying " << static_cast<int>(lying));
      const Matrix x = Matrix::random(shape.rows, shape.k, 2, 1);
      const Matrix weight = Matrix::random(shape.n, shape.k, 0, 2);
      const std::vector<float> right = packed(weight);
      Matrix expected(shape.rows, shape.n), y(shape.rows, shape.n, 3);
      multiply(plain_product<SplitArgs>(x, right, expected));
      const LyingProduct product(lying, x, weight);
      const Partition cut({shape.rows, shape.n, shape.k}, table().grain(), (shape.rows + 39) / 40,
                          (shape.n + 39) / 40);
      for (std::int64_t i = 0; i < cut.count(); ++i) multiply(product.args(y, cut.block(i)));
      EXPECT_TRUE(y.has_same_bits(expected));
      EXPECT_TRUE(y.guards_are_intact());
      if (lying != Lying::BothAcross) continue;
      const AlignedBuffer aligned(shape.rows * kStreamedStride * 4);
      SplitArgs args = product.args(y, {0, shape.rows, 0, shape.n});
      args.y = aligned.floats();
      args.y_stride = kStreamedStride;
      args.streams_y = true;
      multiply(args);
      for (std::int64_t r = 0; r < shape.rows; ++r)
        EXPECT_EQ(std::memcmp(args.y + r * kStreamedStride, expected.row(r),
                              static_cast<std::size_t>(shape.n) * sizeof(float)),
                  0);
    }
}

// Of the gradient of a weight, whose depth is the number of rows.
TEST_P(EverySplit, TakesADepthThatIsNoWholeStepForZeros) {
  for (const std::int64_t depth : {1, 31, 45, 400}) {
    const std::int64_t padded = (depth + kSplitGrain - 1) / kSplitGrain * kSplitGrain;
    const Matrix x = Matrix::random(37, depth, 0, 1), weight = Matrix::random(50, depth, 0, 2);
    Matrix padded_x(37, padded), padded_weight(50, padded), expected(37, 50), y(37, 50, 3);
    for (std::int64_t p = 0; p < depth; ++p) {
      for (std::int64_t r = 0; r < 37; ++r) padded_x(r, p) = x(r, p);
      for (std::int64_t j = 0; j < 50; ++j) padded_weight(j, p) = weight(j, p);
    }
    const std::vector<float> right = packed(padded_weight);
    multiply(plain_product<SplitArgs>(padded_x, right, expected));
    multiply(LyingProduct(Lying::BothAcross, x, weight).args(y, {0, 37, 0, 50}));
    EXPECT_TRUE(y.has_same_bits(expected)) << depth;
    EXPECT_TRUE(y.guards_are_intact());
  }
}

TEST_P(EverySplit, MultipliesPanelsWithNumbersThatAreTooLargeAsFloats) {
  for (const Lying lying : kEveryLying) {
    Matrix x = Matrix::random(40, 800, 0, 1), weight = Matrix::random(100, 800, 0, 2);
    x(3, 790) = std::numeric_limits<float>::infinity();
    x(35, 100) = 3e38f;
    weight(1, 5) = std::numeric_limits<float>::quiet_NaN();
    weight(40, 799) = std::numeric_limits<float>::infinity();
    weight(90, 7) = 3e38f;
    const Matrix floats = float_product(x, weight);
    Matrix y(40, 100);
    multiply(LyingProduct(lying, x, weight).args(y, {0, 40, 0, 100}));
    for (std::int64_t r = 0; r < 40; ++r)
      for (std::int64_t j = 0; j < 100; ++j) {
        // Each of the first three panels of 32 columns has a number that is too large.
        if (std::isnan(floats(r, j)))
          ASSERT_TRUE(std::isnan(y(r, j))) << r << "," << j;
        else if (r == 3 || r == 35 || j < 96)
          ASSERT_EQ(y(r, j), floats(r, j)) << r << "," << j;
        else
          ASSERT_NEAR(y(r, j), floats(r, j), 5e-4);
      }
  }
}

TEST_P(EverySplit, ActivatesAndAddsTheResidualThatLiesInY) {
  const Matrix x = Matrix::random(19, 64, 0, 1), weight = Matrix::random(45, 64, 0, 2);
  const std::vector<float> right = packed(weight);
  Matrix plain(19, 45), y = Matrix::random(19, 45, 2, 4);
  const Matrix residual = y;
  multiply(plain_product<SplitArgs>(x, right, plain));
  SplitArgs args = plain_product<SplitArgs>(x, right, y);
  args.activation = Unary::Relu;
  args.residual = y.data();
  args.residual_stride = y.stride();
  multiply(args);
  for (std::int64_t r = 0; r < y.rows(); ++r)
    for (std::int64_t j = 0; j < y.columns(); ++j)
      ASSERT_EQ(y(r, j), std::max(plain(r, j), 0.0f) + residual(r, j));
}

// Infinity has no remainder, and the parts of a large number may overflow where the number does
// not.
TEST_P(EverySplit, MultipliesRowsWithNumbersThatAreTooLargeAsFloats) {
  Matrix x = Matrix::random(20, 800, 0, 1);
  const Matrix weight = Matrix::random(40, 800, 0, 2);
  x(3, 790) = std::numeric_limits<float>::infinity();
  x(8, 5) = std::numeric_limits<float>::quiet_NaN();
  x(17, 100) = 3e38f;
  const std::vector<float> right = packed(weight);
  Matrix y(20, 40), residual(20, 40);
  SplitArgs args = plain_product<SplitArgs>(x, right, y);
  args.residual = y.data();
  args.residual_stride = y.stride();
  multiply(args);
  const Matrix floats = float_product(x, weight);
  for (const std::int64_t r : {3, 8, 17})
    for (std::int64_t j = 0; j < y.columns(); ++j) {
      if (std::isnan(floats(r, j)))
        EXPECT_TRUE(std::isnan(y(r, j)));
      else
        EXPECT_EQ(y(r, j), floats(r, j));
    }
  for (const std::int64_t r : {0, 19})
    for (std::int64_t j = 0; j < y.columns(); ++j) EXPECT_NEAR(y(r, j), floats(r, j), 1e-4);
}

// Numbers of 8 bits times powers of two have one part, and products with parts that are 0 change no
// sum.
TEST_P(EverySplit, GivesWholeNumbersTimesPowersTheBitsOfTheirFloats) {
  for (const auto& [most, width, rows] :
       {std::tuple{127, 32, 1},
        {127, 32, 40},
        {7, 32, 1},
        {7, 32, 40},
        // Blocks that are no multiples of four keep a weight from lying by fours.
        {127, 2, 40},
        {7, 2, 40}}) {
    const std::int64_t n = 70, k = 800;
    numerics::RowCodes codes;
    codes.rows = n;
    codes.columns = k;
    codes.blocks = k / width;
    codes.width = width;
    std::mt19937 random(3);
    for (std::int64_t i = 0; i < n * k; ++i)
      codes.numbers.push_back(static_cast<std::int8_t>(
          static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most));
    for (std::int64_t i = 0; i < n * codes.blocks; ++i)
      codes.scales.push_back(std::ldexp(1.0f, static_cast<int>(random() % 40) - 30));
    Matrix weight(n, k), x = Matrix::random(rows, k, 4, 1);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t p = 0; p < k; ++p)
        weight(j, p) = static_cast<float>(codes.numbers[static_cast<std::size_t>(j * k + p)]) *
                       codes.scales[static_cast<std::size_t>(j * codes.blocks + p / width)];
    if (rows > 2) x(2, 700) = std::numeric_limits<float>::infinity();
    const std::vector<float> right = packed(weight);
    Matrix expected(rows, n), y(rows, n, 3);
    multiply(plain_product<SplitArgs>(x, right, expected));

    WidenedWeight widened;
    widened.pack(code_kernels(Isa::Avx512), codes);
    EXPECT_TRUE(widened.suits_split());
    const AlignedBuffer scratch(table().widened_scratch_bytes(rows, n));
    WidenedArgs args{};
    args.rows = rows;
    args.n = n;
    args.x = x.data();
    args.x_stride = x.stride();
    args.y = y.data();
    args.y_stride = y.stride();
    args.scratch = scratch.data();
    widened.set_operands(args, 0);
    table().multiply_widened(args);
    EXPECT_TRUE(y.has_same_bits(expected))
        << most << " in blocks of " << width << ", " << rows << " rows";
    EXPECT_TRUE(y.guards_are_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(, EverySplit, testing::ValuesIn(every_split_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EverySplit);

TEST(SuitsSplit, TakesLargeWeightsOfOrdinaryNumbers) {
  Matrix weight = Matrix::random(512, 512);
  const std::span<float> all(weight.data(), 512 * 512);
  EXPECT_TRUE(suits_split(all, 512, 512));
  EXPECT_FALSE(suits_split(all, 2048, 128));
  EXPECT_FALSE(suits_split(all.first(511 * 512), 511, 512));
  all[77] = 0x1p20f;
  EXPECT_FALSE(suits_split(all, 512, 512));
  all[77] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(suits_split(all, 512, 512));
}

}  // namespace
}  // namespace lathe::engine
