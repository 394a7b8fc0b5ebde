#include "lathe/numerics/term_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lathe/numerics/testing/matrix.h"

namespace lathe::numerics {
namespace {

TEST(TermFormat, LeavesWhatAMaskTakesOutOfItsScales) {
  const std::vector<float> kept{0.5f, -2, 0.25f, 3, -0.125f, 1};
  for (const char* const text : {"binary:scaled", "binary:residual,2", "binary:scaled,tensor"}) {
    SCOPED_TRACE(text);
    const std::shared_ptr<const NumberFormat> format = parse_format(text);
    ASSERT_TRUE(format->facts().takes_mask);
    std::vector<float> expected(kept.size());
    QuantizeArgs alone{.rows = 1, .columns = 6, .x = kept.data(), .y = expected.data()};
    format->quantize(alone);
    // The same values among others that are masked.
    std::vector<float> mixed, mask;
    for (const float value : kept) {
      mixed.insert(mixed.end(), {1000, value, 0});
      mask.insert(mask.end(), {0, 1, 0});
    }
    std::vector<float> y(mixed.size()), decoded(mixed.size());
    QuantizeArgs args{.rows = 1, .columns = 18, .x = mixed.data(), .y = y.data()};
    args.mask = mask.data();
    format->quantize(args);
    format->decode(format->encode(args), nullptr, nullptr, decoded.data());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(y[3 * i + 1], expected[i]);
      EXPECT_EQ(decoded[3 * i + 1], expected[i]);
    }
  }
}

// The order of codecs/sum_order.h, one addition after another.
double sum_of_chunk(const float* x, std::int64_t size, std::int64_t run) {
  double sums[16] = {};
  std::int64_t i = 0;
  for (; i + 16 * run <= size; i += 16 * run)
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      float of_run = std::fabs(x[i + lane]);
      for (std::int64_t step = 1; step < run; ++step) of_run += std::fabs(x[i + lane + 16 * step]);
      sums[lane] += of_run;
    }
  for (; i < size; ++i) sums[i % 16] += std::fabs(x[i]);
  for (int half = 8; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

TEST(TermFormat, AddsUpMeansChunkByChunk) {
  constexpr std::int64_t kSize = 17 * 4096 + 333;
  std::vector<float> x(kSize), y(kSize);
  for (std::int64_t i = 0; i < kSize; ++i)
    x[static_cast<std::size_t>(i)] = std::sin(static_cast<float>(i)) * (i % 7 == 0 ? 1e6f : 1e-3f);
  x[5000] = x[5016] = 3e38f;  // one chunk is beyond float
  double sums[16] = {};
  for (std::int64_t at = 0; at < kSize; at += 4096) {
    const std::int64_t size = std::min<std::int64_t>(4096, kSize - at);
    double sum = sum_of_chunk(x.data() + at, size, 8);
    if (std::isinf(sum)) sum = sum_of_chunk(x.data() + at, size, 1);
    sums[at / 4096 % 16] += sum;
  }
  for (int half = 8; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  const auto mean = static_cast<float>(sums[0] / static_cast<double>(kSize));
  QuantizeArgs args{.rows = 1, .columns = kSize, .x = x.data(), .y = y.data()};
  for (const Isa isa : supported_isas()) {
    args.isa = isa;
    parse_format("binary:scaled")->quantize(args);
    EXPECT_EQ(y[1], mean);
  }
}

TEST(TermFormat, HasNoScaleWhereAMaskTakesAllOut) {
  const std::vector<float> x{1, 2}, mask{0, 0};
  std::vector<float> y(2);
  QuantizeArgs args{.rows = 1, .columns = 2, .x = x.data(), .y = y.data()};
  args.mask = mask.data();
  parse_format("binary:scaled")->quantize(args);
  EXPECT_EQ(y, (std::vector<float>{0, 0}));
}

TEST(TermFormat, TakesNoMaskWhereItHasAZeroOrNoScale) {
  EXPECT_FALSE(parse_format("binary")->facts().takes_mask);
  EXPECT_FALSE(parse_format("ternary")->facts().takes_mask);
}

}  // namespace
}  // namespace lathe::numerics
