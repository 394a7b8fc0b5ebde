#include "lathe/report/parallel_coordinates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/report/svg_count_test.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;

ParallelCoordinates three_axes() {
  return {.title = "Trials",
          .axes = {{"rate", logarithmic_scale(1e-4, 1, 5)},
                   {"activation", category_scale({"gelu", "relu"})},
                   {"value", linear_scale(0, 1, 5)}},
          .items = {},
          .shading = {.label = "value", .scale = linear_scale(0, 1, 5)}};
}

TEST(ParallelCoordinates, DrawsALineForEachItemThroughNamedAxes) {
  ParallelCoordinates chart = three_axes();
  chart.items = {{{0.01, 0, 0.2}, 0.2}, {{0.1, 1, 0.9}, 0.9}};
  const std::string svg = parallel_coordinates(chart);
  EXPECT_EQ(count_in(svg, "<path"), 2u);
  for (const char* text : {">rate<", ">activation<", ">gelu<", ">relu<", ">0.01<", ">value<"})
    EXPECT_THAT(svg, HasSubstr(text));
}

TEST(ParallelCoordinates, PassesBelowAnAxisWhereAnItemHasNoValue) {
  ParallelCoordinates chart = three_axes();
  chart.items = {{{0.01, NAN, 0.2}, 0.2}};
  const std::string svg = parallel_coordinates(chart);
  const std::string path = svg.substr(svg.find("<path d="));
  const std::string line = path.substr(0, path.find("fill"));
  EXPECT_EQ(count_in(line, "M"), 1u) << "one line through all axes";
  EXPECT_EQ(count_in(line, "L"), 2u);
  EXPECT_EQ(count_in(svg, ">none<"), 1u) << "only that axis has a gap";
  EXPECT_EQ(count_in(svg, "nan"), 0u);
}

TEST(ParallelCoordinates, SaysWhenThereIsNothingToDraw) {
  EXPECT_THAT(parallel_coordinates(three_axes()), HasSubstr("no data"));
}

}  // namespace
}  // namespace lathe::report
