#include "lathe/ops/cache_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lathe::ops {
namespace {

TEST(CacheRows, HoldsFloatsAsTheyAre) {
  const CacheLayout layout{DType::F32, 2, 3};
  Tensor cache(DType::F32, {2, layout.width()});
  const std::vector<double> features{1, -2.5, 0.1f, 3, 0, 7};
  write_cache_row(cache, layout, 1, features.data());
  const std::vector<double> expected{0, 0, 0, 0, 0, 0, 1, -2.5, 0.1f, 3, 0, 7};
  EXPECT_EQ(read_cache(cache, layout), expected);
}

TEST(CacheRows, RoundsToBfloat16) {
  const CacheLayout layout{DType::BF16, 1, 3};
  Tensor cache(DType::BF16, {1, layout.width()});
  // Behind 1 come 1 + 2^-7 and 1 + 2^-6: the first half is a tie and goes to the even one.
  const std::vector<double> features{1 + 0x1p-8, 1 + 0x1.8p-7, -3};
  write_cache_row(cache, layout, 0, features.data());
  EXPECT_EQ(read_cache(cache, layout), (std::vector<double>{1, 1 + 0x1p-6, -3}));
}

// The largest magnitude of a head is 127 of its units, whatever the others have.
TEST(CacheRows, GivesEveryHeadAScale) {
  const CacheLayout layout{DType::I8, 2, 3};
  EXPECT_EQ(layout.width(), 8 + 2 * 4) << "six numbers filled up to eight, and two floats";
  Tensor cache(DType::I8, {3, layout.width()});
  const std::vector<double> features{127, -2.4, 0.5, 0.5 * 127, 0.25, -0.76};
  write_cache_row(cache, layout, 2, features.data());
  const std::vector<double> values = read_cache(cache, layout);
  EXPECT_EQ(std::vector<double>(values.begin() + 12, values.end()),
            (std::vector<double>{127, -2, 0, 0.5 * 127, 0, -1}));
}

TEST(CacheRows, ShowsANanInAllOfItsHead) {
  const CacheLayout layout{DType::I8, 2, 2};
  Tensor cache(DType::I8, {1, layout.width()});
  const std::vector<double> features{1, std::numeric_limits<double>::quiet_NaN(), 127, 1};
  write_cache_row(cache, layout, 0, features.data());
  const std::vector<double> values = read_cache(cache, layout);
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
  EXPECT_EQ(values[2], 127);
}

TEST(CacheRows, HoldsFloatsOnlyInWhatIsNoWider) {
  EXPECT_TRUE(can_hold(DType::F64, DType::F64));
  EXPECT_TRUE(can_hold(DType::BF16, DType::F32));
  EXPECT_TRUE(can_hold(DType::I8, DType::F32));
  EXPECT_FALSE(can_hold(DType::I8, DType::F64));
  EXPECT_FALSE(can_hold(DType::I32, DType::F32));
}

}  // namespace
}  // namespace lathe::ops
