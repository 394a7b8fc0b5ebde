#include "lathe/report/layered_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/report/svg_count_test.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::Not;

const Chart kChart{.title = "History", .x = {"trial"}, .y = {"value"}};

TEST(LayeredChart, DrawsPointsAndStepsWithALegendAboveThem) {
  const std::string svg = layered_chart(
      kChart, {{.name = "trials", .x = {0, 1, 2}, .y = {3, 4, 1}, .tooltips = {"a", "b & c", "d"}},
               {.name = "best", .mark = Layer::Mark::Steps, .x = {0, 1, 2}, .y = {3, 3, 1}}});
  EXPECT_EQ(count_in(svg, "<title>"), 3u);
  EXPECT_THAT(svg, HasSubstr("<title>b &amp; c</title>"));
  EXPECT_THAT(svg, HasSubstr(">trials<"));
  EXPECT_THAT(svg, HasSubstr(">best<"));
  // Two points after the first: across, then up or down.
  const std::string path = svg.substr(svg.find("<path d=\"M"));
  EXPECT_EQ(count_in(path.substr(0, path.find("fill")), "H"), 2u);
}

TEST(LayeredChart, LeavesOutWhatLiesBeyondTheLimitsOfAnAxis) {
  Chart chart = kChart;
  chart.y.high = 10;
  const std::string svg =
      layered_chart(chart, {{.x = {0, 1, 2, 3}, .y = {1, 5, 1e9, NAN}, .tooltips = {}}});
  EXPECT_EQ(count_in(svg, "<circle"), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("1e9")));
}

TEST(LayeredChart, NamesTheCategoriesOfAnAxis) {
  Chart chart = kChart;
  chart.x.categories = {"gelu", "relu"};
  const std::string svg = layered_chart(chart, {{.x = {0, 1}, .y = {1, 2}}});
  EXPECT_THAT(svg, HasSubstr(">gelu<"));
  EXPECT_THAT(svg, HasSubstr(">relu<"));
}

TEST(LayeredChart, ColoursPointsByTheirShadeAndDrawsTheBar) {
  const std::string svg =
      layered_chart(kChart, {{.x = {0, 1}, .y = {1, 2}, .shade = {0, 10}}},
                    Shading{.label = "trial number", .scale = linear_scale(0, 10, 5)});
  EXPECT_THAT(svg, HasSubstr("fill=\"" + shade_color(0) + "\""));
  EXPECT_THAT(svg, HasSubstr("fill=\"" + shade_color(1) + "\""));
  EXPECT_THAT(svg, HasSubstr(">trial number<"));
}

TEST(LayeredChart, StaysSmallWithFiveThousandPoints) {
  Layer layer;
  for (int i = 0; i < 5000; ++i) {
    layer.x.push_back(i);
    layer.y.push_back(i % 97);
    layer.tooltips.push_back("a text that would make the picture large");
  }
  EXPECT_LT(layered_chart(kChart, {layer}).size(), 120'000u);
}

TEST(LayeredChart, SaysWhenThereIsNothingToDraw) {
  EXPECT_THAT(layered_chart(kChart, {}), HasSubstr("no data"));
}

}  // namespace
}  // namespace lathe::report
