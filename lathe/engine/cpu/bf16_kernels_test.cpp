#include "lathe/engine/cpu/bf16_kernels.h"

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/exact_product.h"
#include "lathe/engine/cpu/product_partition.h"

namespace lathe::engine {
namespace {

// The nearest number of eight significant bits, ties to even, by its definition.
float rounded(float a) {
  if (a == 0 || !std::isfinite(a)) return a;
  const int exponent = std::max(std::ilogb(a), -126);
  return static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(double{a}, 7 - exponent)), exponent - 7));
}

class EveryBf16 : public testing::TestWithParam<const Bf16Kernels*> {
 protected:
  const Bf16Kernels& table() const { return *GetParam(); }
};

TEST_P(EveryBf16, RoundsToNearestAndTiesToEven) {
  std::vector<float> numbers = {
      0.0f,         -0.0f,         1.0f,           1.00390625f,
      1.01171875f,  -1.00390625f,  1.003907f,      0x1p-130f,
      0x1.01p-127f, 3.4028235e38f, -3.4028235e38f, std::numeric_limits<float>::infinity(),
      0x1.fep127f};
  const Matrix random = Matrix::random(1, 500);
  numbers.insert(numbers.end(), random.row(0), random.row(0) + random.columns());
  std::vector<float> result(numbers.size());
  table().round(numbers.data(), std::ssize(numbers), result.data());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(result[i]),
              std::bit_cast<std::uint32_t>(rounded(numbers[i])))
        << numbers[i];
  const float nan = std::numeric_limits<float>::quiet_NaN();
  table().round(&nan, 1, result.data());
  EXPECT_TRUE(std::isnan(result[0]));
}

// How the operands of a product lie.
enum class Lay { WeightRows, WeightColumns, Gradient };

struct Shape {
  std::int64_t rows, n, k;
};

class Operands {
 public:
  Operands(const Bf16Kernels& table, const Shape& shape, Lay lay)
      : shape_(shape),
        lay_(lay),
        x_(lay == Lay::Gradient ? Matrix::random(shape.k, shape.rows, 0, 1)
                                : Matrix::random(shape.rows, shape.k, 0, 1)),
        b_(lay == Lay::WeightRows ? Matrix::random(shape.n, shape.k, 0, 2)
                                  : Matrix::random(shape.k, shape.n, 0, 2)),
        packed_(static_cast<std::size_t>(table.packed_size(shape.n, shape.k)), 0x7fc0) {
    if (lay == Lay::WeightRows) table.pack(b_.data(), shape.n, shape.k, shape.k, 1, packed_.data());
    if (lay == Lay::WeightColumns)
      table.pack(b_.data(), shape.n, shape.k, 1, shape.n, packed_.data());
  }

  float x(std::int64_t r, std::int64_t p) const {
    return lay_ == Lay::Gradient ? x_(p, r) : x_(r, p);
  }
  float b(std::int64_t p, std::int64_t j) const {
    return lay_ == Lay::WeightRows ? b_(j, p) : b_(p, j);
  }

  void multiply(const Bf16Kernels& table, const Block& block, const Matrix& bias,
                const Matrix* residual, Matrix& y) const {
    const AlignedBuffer scratch(table.scratch_bytes(block.rows, block.columns));
    std::memset(scratch.data(), 0xff, static_cast<std::size_t>(scratch.size()));
    const bool is_gradient = lay_ == Lay::Gradient;
    table.multiply(
        {.rows = block.rows,
         .n = block.columns,
         .k = shape_.k,
         .x = x_.data() + block.row * (is_gradient ? 1 : shape_.k),
         .x_stride = is_gradient ? 1 : shape_.k,
         .x_step = is_gradient ? shape_.rows : 1,
         .packed =
             is_gradient ? nullptr : packed_.data() + table.packed_size(block.column, shape_.k),
         .b = b_.data() + block.column,
         .b_stride = shape_.n,
         .bias = bias.data() + block.column,
         .is_rounded = !is_gradient,
         .activation = residual ? Unary::Relu : Unary::None,
         .residual =
             residual ? residual->data() + block.row * residual->stride() + block.column : nullptr,
         .residual_stride = residual ? residual->stride() : 0,
         .y = y.data() + block.row * y.stride() + block.column,
         .y_stride = y.stride(),
         .scratch = scratch.data()});
  }

 private:
  Shape shape_;
  Lay lay_;
  Matrix x_, b_;
  std::vector<std::uint16_t> packed_;
};

constexpr Shape kShapes[] = {{1, 1, 1},     {2, 33, 2},     {5, 31, 31},
                             {17, 70, 33},  {33, 32, 64},   {40, 65, 9},
                             {3, 40, 1500}, {35, 34, 2049}, {80, 40, 2048}};

// Products of bfloat16 numbers are exact in float, and the sum of k of them and a bias has at most
// k + 1 roundings of a partial sum, in any order; then comes one to eight bits.
TEST_P(EveryBf16, AgreesWithADoubleLoopOverRoundedOperands) {
  for (const Lay lay : {Lay::WeightRows, Lay::WeightColumns, Lay::Gradient})
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(lay) << ": " << shape.rows << " x "
                                      << shape.n << " x " << shape.k);
      const Operands operands(table(), shape, lay);
      const Matrix bias = Matrix::random(1, shape.n, 0, 3);
      Matrix y(shape.rows, shape.n, 3);
      operands.multiply(table(), {0, shape.rows, 0, shape.n}, bias, nullptr, y);
      Matrix x(shape.rows, shape.k), b(shape.n, shape.k);
      for (std::int64_t p = 0; p < shape.k; ++p) {
        for (std::int64_t r = 0; r < shape.rows; ++r) x(r, p) = rounded(operands.x(r, p));
        for (std::int64_t j = 0; j < shape.n; ++j) b(j, p) = rounded(operands.b(p, j));
      }
      for (std::int64_t r = 0; r < shape.rows; ++r)
        for (std::int64_t j = 0; j < shape.n; ++j) {
          const ExactSum dot = exact_dot(x, r, b, j);
          const double exact = dot.value + rounded(bias(0, j));
          const double magnitude = dot.magnitude + std::abs(rounded(bias(0, j)));
          const double sum_error = static_cast<double>(shape.k + 1) * kUnit * magnitude;
          const double rounding = lay == Lay::Gradient ? 0 : 0x1p-8 * (std::abs(exact) + sum_error);
          ASSERT_NEAR(y(r, j), exact, sum_error + rounding) << r << "," << j;
          if (lay != Lay::Gradient) {
            ASSERT_EQ(y(r, j), rounded(y(r, j)));
          }
        }
      EXPECT_TRUE(y.guards_are_intact());
    }
}

TEST_P(EveryBf16, GivesABlockTheBitsOfTheWhole) {
  for (const Lay lay : {Lay::WeightRows, Lay::Gradient})
    for (const Shape& shape : kShapes) {
      const Operands operands(table(), shape, lay);
      const Matrix bias = Matrix::random(1, shape.n, 0, 3);
      Matrix whole(shape.rows, shape.n), in_blocks(shape.rows, shape.n);
      operands.multiply(table(), {0, shape.rows, 0, shape.n}, bias, nullptr, whole);
      const Partition cut({shape.rows, shape.n, shape.k}, table().grain(), (shape.rows + 4) / 5,
                          (shape.n + 39) / 40);
      for (std::int64_t i = 0; i < cut.count(); ++i)
        operands.multiply(table(), cut.block(i), bias, nullptr, in_blocks);
      for (std::int64_t r = 0; r < shape.rows; ++r)
        for (std::int64_t j = 0; j < shape.n; ++j) ASSERT_EQ(in_blocks(r, j), whole(r, j));
    }
}

std::vector<std::uint16_t> upper_halves(const float* numbers, std::int64_t count) {
  std::vector<std::uint16_t> result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded(numbers[i])) >> 16));
  return result;
}

TEST_P(EveryBf16, ReadsAndWritesNumbersThatAreRounded) {
  for (const bool is_gradient : {false, true})
    for (const auto& [rows, n, k] : kShapes) {
      SCOPED_TRACE(testing::Message() << is_gradient << ": " << rows << " x " << n << " x " << k);
      const Matrix x = Matrix::random(rows, k, 0, 1), b = Matrix::random(k, n, 0, 2);
      const Matrix residual = Matrix::random(rows, n, 0, 3);
      std::vector<std::uint16_t> packed(static_cast<std::size_t>(table().packed_size(n, k)));
      table().pack(b.data(), n, k, 1, n, packed.data());
      const AlignedBuffer scratch(table().scratch_bytes(rows, n));
      Matrix y(rows, n);
      Bf16Args args{.rows = rows,
                    .n = n,
                    .k = k,
                    .x = x.data(),
                    .x_stride = is_gradient ? 1 : k,
                    .x_step = is_gradient ? rows : 1,
                    .packed = is_gradient ? nullptr : packed.data(),
                    .b = b.data(),
                    .b_stride = n,
                    .bias = nullptr,
                    .is_rounded = true,
                    .activation = Unary::GeluErf,
                    .residual = residual.data(),
                    .residual_stride = n,
                    .y = y.data(),
                    .y_stride = n,
                    .scratch = scratch.data()};
      table().multiply(args);
      const std::vector<std::uint16_t> expected = upper_halves(y.data(), rows * n);
      const std::vector<std::uint16_t> narrow_x = upper_halves(x.data(), rows * k);
      const std::vector<std::uint16_t> narrow_b = upper_halves(b.data(), k * n);
      std::vector<std::uint16_t> narrow_y(expected.size() + 1, 0x7fc0);
      args.x = args.b = nullptr;
      args.y = nullptr;
      args.narrow_x = narrow_x.data();
      if (is_gradient) args.narrow_b = narrow_b.data();
      args.narrow_y = narrow_y.data();
      table().multiply(args);
      EXPECT_EQ(narrow_y.back(), 0x7fc0);
      narrow_y.pop_back();
      ASSERT_EQ(narrow_y, expected);
    }
}

TEST_P(EveryBf16, StreamsTheSameBits) {
  const Matrix dy = Matrix::random(45, 37, 0, 1), x = Matrix::random(45, 80, 0, 2);
  const AlignedBuffer plain(37 * 80 * 4), streamed(37 * 80 * 4);
  const AlignedBuffer scratch(table().scratch_bytes(37, 80));
  for (const bool streams : {false, true}) {
    Bf16Args args{};
    args.rows = 37;
    args.n = 80;
    args.k = 45;
    args.x = dy.data();
    args.x_stride = 1;
    args.x_step = dy.stride();
    args.b = x.data();
    args.b_stride = x.stride();
    args.activation = Unary::None;
    args.y = streams ? streamed.floats() : plain.floats();
    args.y_stride = 80;
    args.scratch = scratch.data();
    args.streams_y = streams;
    table().multiply(args);
  }
  EXPECT_EQ(std::memcmp(plain.data(), streamed.data(), 37 * 80 * 4), 0);
}

TEST_P(EveryBf16, RoundsBeforeItActivatesAndAddsTheResidual) {
  const Shape shape{19, 45, 40};
  const Operands operands(table(), shape, Lay::WeightRows);
  const Matrix bias = Matrix::random(1, shape.n, 0, 3);
  const Matrix residual = Matrix::random(shape.rows, shape.n, 6, 4);
  Matrix plain(shape.rows, shape.n), y(shape.rows, shape.n, 2);
  operands.multiply(table(), {0, shape.rows, 0, shape.n}, bias, nullptr, plain);
  operands.multiply(table(), {0, shape.rows, 0, shape.n}, bias, &residual, y);
  for (std::int64_t r = 0; r < shape.rows; ++r)
    for (std::int64_t j = 0; j < shape.n; ++j)
      ASSERT_EQ(y(r, j), std::max(plain(r, j), 0.0f) + residual(r, j));
}

INSTANTIATE_TEST_SUITE_P(, EveryBf16, testing::ValuesIn(every_bf16_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace lathe::engine
