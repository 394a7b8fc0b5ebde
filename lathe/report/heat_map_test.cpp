#include "lathe/report/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/report/svg_count_test.h"

namespace lathe::report {
namespace {

HeatMap two_by_two(std::vector<double> cells) {
  return {.chart = {.title = "x and y", .x = {"x"}, .y = {"y"}},
          .x = linear_scale(0, 1, 5),
          .y = category_scale({"a", "b"}),
          .columns = 2,
          .rows = 2,
          .cells = std::move(cells),
          .shading = {.label = "value", .scale = linear_scale(0, 1, 5)}};
}

TEST(HeatMap, DrawsOnePathAColour) {
  const std::string svg = heat_map(two_by_two({0, 0, 1, 0}));
  EXPECT_EQ(count_in(svg, "<path"), 2u);
}

TEST(HeatMap, LeavesUnknownCellsEmpty) {
  EXPECT_EQ(count_in(heat_map(two_by_two({NAN, NAN, NAN, NAN})), "<path"), 0u);
}

TEST(HeatMap, PutsPointsOnTopWithTheirTooltips) {
  HeatMap map = two_by_two({0, 0.5, 1, 0});
  map.points = {.x = {0.5, 0.7}, .y = {0, 1}, .tooltips = {"trial 3", "trial 4"}};
  EXPECT_THAT(heat_map(map), testing::HasSubstr("<title>trial 4</title>"));
}

}  // namespace
}  // namespace lathe::report
