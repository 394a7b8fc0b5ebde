#include "lathe/report/chart_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/report/plot.h"
#include "lathe/report/svg_count_test.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;

TEST(ChartGrid, PutsChartsRowByRow) {
  const std::string chart =
      scatter_chart({.title = "t", .x = {"x"}, .y = {"y"}, .width = 300, .height = 200}, {});
  const std::string svg = chart_grid(
      {.title = "All", .columns = 2, .cell_width = 300, .cell_height = 200}, {chart, chart, chart});
  EXPECT_EQ(count_in(svg, "<svg "), 4u);
  EXPECT_THAT(svg, HasSubstr("<svg x=\"300\" y=\"38\" xmlns"));
  EXPECT_THAT(svg, HasSubstr("<svg x=\"0\" y=\"238\" xmlns"));
}

TEST(ChartGrid, SaysWhenThereIsNothingToDraw) {
  EXPECT_THAT(chart_grid({.title = "All"}, {}), HasSubstr("no data"));
}

}  // namespace
}  // namespace lathe::report
