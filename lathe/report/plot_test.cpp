#include "lathe/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::Not;

const Chart kChart{.title = "Loss", .x = {"step"}, .y = {"loss"}};

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(LineChart, HasTitleLabelsTicksAndALegendForSeveralSeries) {
  const std::string svg =
      line_chart(kChart, {{"train", {0, 50, 100}, {3, 2, 1}}, {"test", {0, 100}, {3, 2}}});
  for (const char* text : {">Loss<", ">step<", ">loss<", ">train<", ">test<", ">0<", ">100<"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_EQ(count(svg, "<path"), 2u);
}

TEST(LineChart, NeedsNoLegendForOneSeries) {
  EXPECT_THAT(line_chart(kChart, {{"train", {0, 1}, {3, 2}}}), Not(HasSubstr(">train<")));
}

TEST(LineChart, BreaksTheLineAtAPointThatCannotBeDrawn) {
  const std::string svg = line_chart(kChart, {{"a", {0, 1, 2, 3}, {1, 2, NAN, 4}}});
  const std::string path = svg.substr(svg.find("<path"), 120);
  EXPECT_EQ(count(path.substr(0, path.find("fill")), "M"), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChart, LeavesOutWhatALogarithmicAxisCannotShow) {
  Chart chart = kChart;
  chart.y.is_logarithmic = true;
  const std::string svg = line_chart(chart, {{"a", {0, 1, 2}, {0, 10, 1000}}});
  EXPECT_EQ(count(svg, "<circle"), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LineChart, DrawsErrorBarsThatMayReachBelowALogarithmicAxis) {
  Chart chart = kChart;
  chart.y.is_logarithmic = true;
  const std::string with = line_chart(chart, {{"a", {0, 1}, {10, 1000}, {20, 10}}});
  const std::string without = line_chart(chart, {{"a", {0, 1}, {10, 1000}}});
  EXPECT_GE(count(with, "<line"), count(without, "<line") + 6);
  EXPECT_THAT(with, Not(HasSubstr("nan")));
}

TEST(LineChart, SaysWhenThereIsNothingToDraw) {
  EXPECT_THAT(line_chart(kChart, {}), HasSubstr("no data"));
  EXPECT_THAT(line_chart(kChart, {{"a", {NAN}, {1}}}), HasSubstr("no data"));
}

TEST(LineChart, InsistsOnTitlesAndLabels) {
  EXPECT_THROW(line_chart({.title = "", .x = {"a"}, .y = {"b"}}, {}), InternalError);
  EXPECT_THROW(line_chart({.title = "t", .x = {"a"}, .y = {""}}, {}), InternalError);
  EXPECT_THROW(line_chart(kChart, {{"a", {1, 2}, {1}}}), InternalError);
}

TEST(ScatterChart, DrawsPointsWithoutLines) {
  const std::string svg = scatter_chart(kChart, {{"a", {1, 2, 3}, {1, 4, 9}}});
  EXPECT_EQ(count(svg, "<circle"), 3u);
  EXPECT_EQ(count(svg, "<path"), 0u);
  EXPECT_THAT(svg, HasSubstr("<title>a, 2: 4</title>"));
}

TEST(BarChart, DrawsABarForEachValueThatIsThere) {
  const std::string svg =
      bar_chart(kChart, {"int8", "int4"}, {{"size", {10, 5}}, {"time", {3, NAN}}});
  EXPECT_EQ(count(svg, "<title>"), 3u);
  EXPECT_THAT(svg, HasSubstr("<title>size, int8: 10</title>"));
}

TEST(BarChart, StartsNegativeBarsAtZero) {
  const std::string svg = bar_chart(kChart, {"up", "down"}, {{"", {1, -1}}});
  EXPECT_THAT(svg, Not(HasSubstr("height=\"-")));
  EXPECT_THAT(svg, HasSubstr(">-1<"));
}

TEST(Histogram, CountsEveryValueOnce) {
  const std::string svg = histogram(kChart, {0, 0.1, 0.2, 0.9, 1.0, NAN}, 2);
  EXPECT_THAT(svg, HasSubstr("<title>3</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>2</title>"));
  EXPECT_EQ(count(histogram(kChart, {7, 7, 7}, 5), "<title>3</title>"), 1u);
  EXPECT_THAT(histogram(kChart, {}), HasSubstr("no data"));
}

TEST(EveryChart, EscapesUntrustedText) {
  const std::string evil = "<script>\"&\x01";
  const Chart chart{.title = evil, .x = {evil}, .y = {evil}};
  for (const std::string& svg :
       {line_chart(chart, {{evil, {1}, {1}}, {evil, {2}, {2}}}),
        bar_chart(chart, {evil}, {{evil, {1}}, {evil, {2}}}), histogram(chart, {1, 2})}) {
    EXPECT_THAT(svg, Not(HasSubstr("<script>")));
    EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&quot;&amp;\uFFFD"));
    const auto checked = run_program({"xmllint", "--noout", "-"}, svg);
    if (checked) {
      EXPECT_EQ(checked->exit_status, 0) << checked->errors;
    }
  }
}

TEST(EveryChart, GivesTheSameBytesForTheSameData) {
  const std::vector<Series> series = {{"a", {0.1, 0.2, 0.3}, {1e-7, 2.5, 1e9}, {1e-8, 0.5, 1e8}}};
  EXPECT_EQ(line_chart(kChart, series), line_chart(kChart, series));
}

TEST(EveryChart, SurvivesExtremeNumbers) {
  const std::vector<double> wild = {-1.7e308, 1.7e308, 1e300, -1e300, 5e-324, INFINITY};
  for (const std::string& svg :
       {scatter_chart(kChart, {{"a", wild, wild}}), histogram(kChart, wild)}) {
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(LineChart, DrawsALineThatIsCoveredWiderBelow) {
  const Chart chart{.title = "t", .x = {.label = "x"}, .y = {.label = "y"}};
  const std::string apart = line_chart(
      chart, {{.name = "a", .x = {0, 1}, .y = {0, 1}}, {.name = "b", .x = {0, 1}, .y = {1, 0}}});
  EXPECT_EQ(count(apart, "stroke-width=\"2\""), 2u);
  const std::string covered = line_chart(
      chart, {{.name = "a", .x = {0, 1}, .y = {0, 1}}, {.name = "b", .x = {0, 1}, .y = {0, 1}}});
  EXPECT_EQ(count(covered, "stroke-width=\"6\""), 1u);
  EXPECT_EQ(count(covered, "stroke-width=\"2\""), 1u);
}

TEST(LineChart, DrawsBarsThatAreNotEven) {
  const Chart chart{.title = "t", .x = {.label = "x"}, .y = {.label = "y"}};
  const std::string svg =
      line_chart(chart, {{.name = "a", .x = {0}, .y = {0.9}, .low = {0.5}, .high = {1}}});
  EXPECT_NE(svg.find(">0.5<"), svg.npos) << "the axis reaches to the bar's foot";
}

TEST(Histogram, ShowsLevelsAndWhatIsClipped) {
  const Chart chart{.title = "t", .x = {.label = "x"}, .y = {.label = "values"}};
  const std::string svg =
      histogram(chart, {-3, -1, 0, 1, 2}, 5, {.levels = {-2, -1, 0, 1}, .low = -2, .high = 1});
  EXPECT_EQ(count(svg, "<title>clipped</title>"), 2u);
  const std::size_t ticks = svg.find("v6");
  ASSERT_NE(ticks, svg.npos);
  EXPECT_EQ(count(svg, "v6"), 4u);
}

TEST(ScatterChart, CanReachAsFarBelowZeroAsAbove) {
  const Chart chart{.title = "t", .x = {.label = "x", .is_symmetric = true}, .y = {.label = "y"}};
  const std::string svg = scatter_chart(chart, {{.name = "a", .x = {-8, 7}, .y = {1, 1}}});
  EXPECT_THAT(svg, HasSubstr(">-10<"));
  EXPECT_THAT(svg, HasSubstr(">10<"));
}

}  // namespace
}  // namespace lathe::report
