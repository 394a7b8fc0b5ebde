#include "lathe/study/math/distance_process.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lathe::study {
namespace {

std::vector<double> distances_between(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (const double x : a)
    for (const double y : b) result.push_back(std::abs(x - y));
  return result;
}

// Values fall to the right: more is expected to the right of the last point than to the left of the
// first, and next to nothing at a point that is known to be bad.
TEST(DistanceProcess, ExpectsMostWhereValuesFall) {
  const std::vector<double> places = {0, 1, 2, 3, 4, 5};
  const std::vector<double> losses = {5, 4, 3, 2, 1, 0};
  const DistanceProcess process(distances_between(places, places), losses);
  const auto expected = [&](double x) {
    return process.expected_improvement(distances_between({x}, places));
  };
  EXPECT_GT(expected(5.5), expected(-0.5));
  EXPECT_GT(expected(5.5), expected(2.5));
  EXPECT_LT(expected(1), 1e-3);
}

TEST(DistanceProcess, IsCalmWhenAllValuesAreEqual) {
  const std::vector<double> places = {0, 1, 2};
  const DistanceProcess process(distances_between(places, places), std::vector<double>{3, 3, 3});
  EXPECT_TRUE(std::isfinite(process.expected_improvement(distances_between({0.5}, places))));
}

TEST(DistanceProcess, AcceptsTheSamePlaceTwice) {
  const std::vector<double> places = {1, 1, 1, 2};
  const DistanceProcess process(distances_between(places, places), std::vector<double>{3, 4, 5, 1});
  EXPECT_TRUE(std::isfinite(process.expected_improvement(distances_between({1}, places))));
}

TEST(DistanceProcess, TakesVeryBadValuesForBad) {
  EXPECT_EQ(clipped_losses(std::vector<double>{1, 2, 3, 4, 1e9}),
            (std::vector<double>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace lathe::study
