#include <cmath>
#include <limits>

#include "lathe/core/philox.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

// The 16 bits of element `index` among those that share `counter` and its following blocks.
std::uint32_t bits_of(const Dropout& dropout, PhiloxCounter counter, int block_word,
                      std::int64_t index) {
  counter[block_word] += static_cast<std::uint32_t>(index / 8);
  const PhiloxCounter random = philox(counter, dropout.seed);
  return random[index % 8 / 2] >> (16 * (index % 2)) & 0xffff;
}

float dropped_by_the_rule(const Dropout& dropout, std::int32_t position, std::int32_t example,
                          std::int64_t feature, float x) {
  if (dropout.threshold == 0) return x;
  const PhiloxCounter counter = {dropout.site << 16, static_cast<std::uint32_t>(position),
                                 static_cast<std::uint32_t>(example), dropout.step};
  if (bits_of(dropout, counter, 0, feature) < dropout.threshold) return 0.0f;
  return x * static_cast<float>(65536.0 / (65536 - dropout.threshold));
}

class DropoutKernel : public EveryIsa {
 protected:
  static DropoutRowsArgs dropping(const Dropout& dropout, const Matrix& x, Matrix& y,
                                  const std::vector<std::int32_t>& positions,
                                  const std::vector<std::int32_t>& examples) {
    return {.rows = x.rows(),
            .n = x.columns(),
            .x = x.data(),
            .x_stride = x.stride(),
            .residual = nullptr,
            .residual_stride = 0,
            .y = y.data(),
            .y_stride = y.stride(),
            .dropout = dropout,
            .positions = positions.data(),
            .examples = examples.data()};
  }
};

TEST_P(DropoutKernel, EqualsTheScalarRuleBitForBit) {
  const std::vector<std::int32_t> positions = {0, 1, 511, 65535, -1};
  const std::vector<std::int32_t> examples = {0, 24999, 3, std::numeric_limits<int>::max(), -7};
  const Dropout dropouts[] = {
      {.threshold = 6554, .seed = 0x0123456789abcdef, .step = 1, .site = 3},
      {.threshold = 32768, .seed = 0, .step = 0, .site = 0},
      {.threshold = 1, .seed = ~std::uint64_t{0}, .step = 0xffffffff, .site = 65535},
      {.threshold = 65535, .seed = 42, .step = 1000000, .site = 17},
      {.threshold = 0, .seed = 42, .step = 5, .site = 1}};
  for (const std::int64_t n : {1, 5, 8, 16, 31, 64, 100, 128, 129, 300, 3072})
    for (const Dropout& dropout : dropouts) {
      SCOPED_TRACE(testing::Message() << "width " << n << " threshold " << dropout.threshold);
      const Matrix x = Matrix::random(5, n, 3);
      Matrix y(5, n, 1);
      table().dropout_rows(dropping(dropout, x, y, positions, examples));
      for (std::int64_t r = 0; r < 5; ++r)
        for (std::int64_t c = 0; c < n; ++c)
          ASSERT_EQ(y(r, c), dropped_by_the_rule(dropout, positions[r], examples[r], c, x(r, c)))
              << "row " << r << " column " << c;
      ASSERT_TRUE(y.guards_are_intact());
    }
}

TEST_P(DropoutKernel, DrawsTheSameBitsAsPhiloxForManyCounters) {
  // A threshold of 32768 shows the highest bit of each half.
  const Dropout dropout{.threshold = 32768, .seed = 0xfeedface12345678, .step = 77, .site = 9};
  std::vector<std::int32_t> positions, examples;
  for (std::int32_t r = 0; r < 600; ++r) {
    positions.push_back(r * 7);
    examples.push_back(r / 5 * 1001);
  }
  Matrix x(600, 256);
  x.fill(1.0f);
  Matrix y(600, 256);
  table().dropout_rows(dropping(dropout, x, y, positions, examples));
  std::int64_t kept = 0;
  for (std::int64_t r = 0; r < 600; ++r)
    for (std::int64_t c = 0; c < 256; ++c) {
      ASSERT_EQ(y(r, c), dropped_by_the_rule(dropout, positions[r], examples[r], c, 1.0f));
      kept += y(r, c) != 0.0f;
    }
  // A binomial count of 153600 halves is within four deviations, 784, of its mean.
  EXPECT_NEAR(static_cast<double>(kept), 76800, 784);
}

TEST_P(DropoutKernel, AddsTheResidualAfterDroppingAndWorksInPlace) {
  const std::vector<std::int32_t> positions = {4, 5, 6}, examples = {1, 1, 2};
  const Dropout dropout{.threshold = 20000, .seed = 5, .step = 2, .site = 4};
  for (const std::int64_t n : {7, 128, 133}) {
    const Matrix x = Matrix::random(3, n, 0, 1);
    const Matrix residual = Matrix::random(3, n, 2, 2);
    Matrix y = x;
    DropoutRowsArgs args = dropping(dropout, y, y, positions, examples);
    args.residual = residual.data();
    args.residual_stride = residual.stride();
    table().dropout_rows(args);
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t c = 0; c < n; ++c)
        ASSERT_EQ(y(r, c), dropped_by_the_rule(dropout, positions[r], examples[r], c, x(r, c)) +
                               residual(r, c));
    EXPECT_TRUE(y.guards_are_intact());
  }
}

TEST_P(DropoutKernel, DropsEverythingEvenNan) {
  const std::vector<std::int32_t> zero = {0};
  Matrix x(1, 20);
  x.fill(std::numeric_limits<float>::quiet_NaN());
  Matrix y(1, 20);
  y.fill(1.0f);
  table().dropout_rows(
      dropping({.threshold = 65536, .seed = 1, .step = 1, .site = 1}, x, y, zero, zero));
  for (std::int64_t c = 0; c < 20; ++c) EXPECT_EQ(y(0, c), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(, DropoutKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
