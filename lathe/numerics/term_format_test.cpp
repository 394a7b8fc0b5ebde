#include "lathe/numerics/term_format.h"

#include <gtest/gtest.h>

#include <vector>

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
