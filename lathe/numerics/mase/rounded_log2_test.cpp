#include "lathe/numerics/mase/rounded_log2.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::numerics {
namespace {

// log2 as float32 gives it: from double, which is close enough to it.
float log2_of(std::uint32_t bits) {
  return static_cast<float>(std::log2(double{float_of(bits)}));
}

// The first floats of [2^k, 2^(k+1)) whose logarithm is rounded up are where doubts are.
template <typename Round, typename Whole>
void expect_same_around_limits(Round round, Whole whole) {
  for (std::uint32_t field = 0; field < 255; ++field) {
    const std::uint32_t begin = field == 0 ? 1 : field << 23, end = (field + 1) << 23;
    for (std::uint32_t first = begin; first < end;) {
      const int here = static_cast<int>(whole(log2_of(first)));
      std::uint32_t low = first, high = end;
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (static_cast<int>(whole(log2_of(middle))) > here)
          high = middle;
        else
          low = middle + 1;
      }
      for (std::uint32_t bits = std::max(begin, low - std::min(low, 200u));
           bits < std::min(end, low + 200); ++bits)
        ASSERT_EQ(round(float_of(bits)), static_cast<int>(whole(log2_of(bits)))) << float_of(bits);
      first = high;
    }
  }
}

TEST(RoundedLog2, IsWhatRoundingTheFloatGives) {
  expect_same_around_limits(floor_log2, [](float log) { return std::floor(log); });
  expect_same_around_limits(ceil_log2, [](float log) { return std::ceil(log); });
  expect_same_around_limits(nearest_log2, [](float log) { return std::nearbyint(log); });
}

}  // namespace
}  // namespace lathe::numerics
