// Floats by weights of whole numbers: few rows, by digits where there are instructions for them,
// against sums of doubles.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "lathe/engine/cpu/code_weight.h"

namespace lathe::engine {
namespace {

struct Widened {
  std::int64_t rows, n, k;
  numerics::RowCodes weight;
  std::vector<float> x, bias;

  // Numbers of 4 or 8 bits in blocks of `width` columns, and inputs of very different size.
  Widened(std::int64_t rows_, std::int64_t n_, std::int64_t k_, std::int64_t width, int bits)
      : rows(rows_), n(n_), k(k_) {
    std::uint32_t seed = 7;
    const auto next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
    weight.rows = n;
    weight.columns = k;
    weight.width = width;
    weight.blocks = (k + width - 1) / width;
    const std::uint32_t half = 1u << (bits - 1);
    for (std::int64_t i = 0; i < n * k; ++i)
      weight.numbers.push_back(
          static_cast<std::int8_t>(static_cast<int>(next() % (2 * half)) - static_cast<int>(half)));
    for (std::int64_t i = 0; i < n * weight.blocks; ++i)
      weight.scales.push_back(0.01f + 1e-9f * static_cast<float>(next()));
    for (std::int64_t i = 0; i < rows * k; ++i)
      x.push_back(
          std::ldexp(static_cast<float>(next()) * 0x1p-23f - 1.0f, -static_cast<int>(i % 9)));
    for (std::int64_t i = 0; i < n; ++i) bias.push_back(static_cast<float>(next()) * 0x1p-24f);
  }

  // In blocks of so many columns.
  std::vector<float> multiply(const CodeKernels& kernels, std::int64_t columns) const {
    WidenedWeight packed;
    packed.pack(kernels, weight);
    std::vector<float> y(static_cast<std::size_t>(rows * n), -1.0f);
    for (std::int64_t column = 0; column < n; column += columns) {
      WidenedArgs args{};
      args.rows = rows;
      args.n = std::min(columns, n - column);
      args.x = x.data();
      args.x_stride = k;
      args.bias = bias.data() + column;
      args.activation = Unary::None;
      args.y = y.data() + column;
      args.y_stride = n;
      args.is_few = rows <= kFewWidenedRows;
      const AlignedBuffer scratch(packed.scratch_bytes(rows, args.n));
      args.scratch = scratch.data();
      packed.set_operands(args, column);
      kernels.multiply_widened(args);
    }
    return y;
  }

  void expect_near(const std::vector<float>& y) const {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = bias[static_cast<std::size_t>(j)], magnitude = std::fabs(sum);
        for (std::int64_t i = 0; i < k; ++i) {
          const double term =
              double{x[static_cast<std::size_t>(r * k + i)]} *
              weight.numbers[static_cast<std::size_t>(j * k + i)] *
              weight.scales[static_cast<std::size_t>(j * weight.blocks + i / weight.width)];
          sum += term;
          magnitude += std::fabs(term);
        }
        // Half a unit for each of the sums of floats; digits add fewer of them.
        ASSERT_NEAR(y[static_cast<std::size_t>(r * n + j)], sum,
                    std::ldexp(static_cast<double>(k + 4) * magnitude, -24))
            << "row " << r << ", column " << j;
      }
  }
};

class EveryWidened : public testing::TestWithParam<const CodeKernels*> {};

TEST_P(EveryWidened, IsNearSumsOfDoubles) {
  for (const int bits : {4, 8})
    for (const auto& [rows, n, k, width] : {std::array<std::int64_t, 4>{1, 7, 40, 40},
                                            {1, 100, 768, 768},
                                            {3, 64, 96, 32},
                                            {4, 33, 512, 128},
                                            {1, 40, 600, 600},
                                            {2, 32, 42, 42},
                                            {1, 70, 1024, 32},
                                            {9, 40, 96, 32},
                                            {6, 40, 768, 768}}) {
      SCOPED_TRACE(fmt::format("{} bits, {} x {} x {} by {}", bits, rows, n, k, width));
      const Widened product(rows, n, k, width, bits);
      product.expect_near(product.multiply(*GetParam(), n));
    }
}

// Scales that are bfloat16 numbers take half the bytes, and mean the same.
TEST_P(EveryWidened, KeepsShortScalesShort) {
  Widened product(2, 40, 128, 32, 4);
  WidenedWeight whole, half;
  whole.pack(*GetParam(), product.weight);
  for (float& scale : product.weight.scales)
    scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xffff0000u);
  half.pack(*GetParam(), product.weight);
  EXPECT_LT(half.bytes(), whole.bytes());
  product.expect_near(product.multiply(*GetParam(), product.n));
}

TEST_P(EveryWidened, HasTheSameBitsInAnyColumns) {
  const std::int64_t panel = GetParam()->grain().columns;
  for (const std::int64_t rows : {1, 4, 7}) {
    const Widened product(rows, 5 * panel + 3, 256, 32, 4);
    const std::vector<float> whole = product.multiply(*GetParam(), product.n);
    for (const std::int64_t panels : {1, 2, 3})
      EXPECT_EQ(product.multiply(*GetParam(), panels * panel), whole) << panels << " panels";
  }
}

TEST_P(EveryWidened, ShowsWhatIsNotFiniteInEveryResult) {
  Widened product(1, 40, 64, 32, 8);
  product.x[5] = std::numeric_limits<float>::quiet_NaN();
  for (const float y : product.multiply(*GetParam(), 40)) EXPECT_TRUE(std::isnan(y));
}

TEST_P(EveryWidened, GivesTheBiasForARowOfZeros) {
  Widened product(1, 40, 64, 32, 8);
  product.x.assign(64, 0.0f);
  EXPECT_EQ(product.multiply(*GetParam(), 40), product.bias);
}

INSTANTIATE_TEST_SUITE_P(Ways, EveryWidened, testing::ValuesIn(every_code_kernels()),
                         [](const auto& table) { return std::string(table.param->name); });

}  // namespace
}  // namespace lathe::engine
