#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lathe/core/number_format.h"

namespace lathe::numerics {
namespace {

// The number that a standard normal variable stays below with this probability.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return low;
}

// As the paper makes them: eight quantiles above zero and seven below, evenly spaced in probability
// from the outermost, which leaves the mean of 1/30 and 1/32 outside, to the middle.
std::vector<double> derive_levels() {
  constexpr double kOutermost = 1 - (1.0 / 30 + 1.0 / 32) / 2;
  std::vector<double> levels{0};
  for (int i = 0; i < 8; ++i)
    levels.push_back(normal_quantile(kOutermost + (0.5 - kOutermost) * i / 8));
  for (int i = 0; i < 7; ++i)
    levels.push_back(-normal_quantile(kOutermost + (0.5 - kOutermost) * i / 7));
  std::sort(levels.begin(), levels.end());
  const double largest = levels.back();
  for (double& level : levels) level /= largest;
  return levels;
}

TEST(Nf4, HasTheQuantilesOfTheNormalDistribution) {
  const std::vector<double> levels = derive_levels();
  // A block whose largest magnitude is 1 has scale 1; a level rounds to itself.
  std::vector<float> x(levels.begin(), levels.end()), y(x.size());
  QuantizeArgs args;
  args.rows = 1;
  args.columns = static_cast<std::int64_t>(x.size());
  args.x = x.data();
  args.y = y.data();
  parse_format("nf4")->quantize(args);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], levels[i], 1e-5) << "level " << i;
}

}  // namespace
}  // namespace lathe::numerics
