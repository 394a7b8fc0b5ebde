#include "lathe/report/study_charts/study_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/report/study_charts/study_page.h"
#include "lathe/report/svg_count_test.h"

namespace lathe::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Four trials: three complete ones, of which the last is the best, and a pruned one.
StudyData small_study() {
  StudyData data{.name = "s", .objectives = {{"value", false}}};
  data.trials = {{.number = 0, .values = {3}, .reports = {{0, 5}, {1, 3}}, .tooltip = "trial 0"},
                 {.number = 1, .values = {2}, .reports = {{0, 4}, {1, 2}}, .tooltip = "trial 1"},
                 {.number = 2,
                  .state = ChartTrial::State::Pruned,
                  .values = {2.5},
                  .reports = {{0, 2.5}},
                  .tooltip = "trial 2"},
                 {.number = 3, .values = {1}, .tooltip = "trial 3"}};
  data.rows = {0, 1, 3};
  data.is_front = {false, false, true};
  data.parameters = {
      {.axis = {.label = "rate", .is_logarithmic = true}, .values = {0.1, 0.01, 1}},
      {.axis = {.label = "act", .categories = {"relu", "gelu"}}, .values = {0, NAN, 1}}};
  data.importance = {{"act", 0.75}, {"rate", 0.25}};
  return data;
}

TEST(StudyCharts, HistoryHasAPointForEachCompleteAndPrunedTrial) {
  const std::string svg = history_chart(small_study());
  EXPECT_THAT(svg, HasSubstr("History of s"));
  for (const char* trial : {"trial 0", "trial 1", "trial 2", "trial 3"})
    EXPECT_EQ(count_in(svg, std::string("<title>") + trial), 1u) << trial;
  EXPECT_THAT(svg, HasSubstr(">best so far<"));
}

// Trials that failed, run or wait have no value; they stand below the others, each with its mark.
TEST(StudyCharts, HistoryShowsEveryState) {
  StudyData data = small_study();
  data.trials.push_back({.number = 4, .state = ChartTrial::State::Failed, .tooltip = "trial 4"});
  data.trials.push_back({.number = 5, .state = ChartTrial::State::Running, .tooltip = "trial 5"});
  data.trials.push_back({.number = 6, .state = ChartTrial::State::Pruned, .tooltip = "trial 6"});
  const std::string svg = history_chart(data);
  for (int number = 0; number <= 6; ++number)
    EXPECT_EQ(count_in(svg, "<title>trial " + std::to_string(number)), 1u) << number;
  for (const char* name : {">complete<", ">pruned<", ">failed: no value<", ">running: no value<"})
    EXPECT_THAT(svg, HasSubstr(name));
  EXPECT_THAT(svg, Not(HasSubstr(">waiting<")));
}

TEST(StudyCharts, HistoryPutsStraysAtTheEdge) {
  StudyData data{.name = "s", .objectives = {{"value", false}}};
  for (int i = 0; i < 30; ++i) {
    data.trials.push_back(
        {.number = i, .values = {i == 7 ? 1e6 : i}, .tooltip = std::to_string(i)});
    data.rows.push_back(static_cast<std::size_t>(i));
  }
  const std::string svg = history_chart(data);
  EXPECT_EQ(count_in(svg, "<title>7<"), 1u);
  EXPECT_THAT(svg, HasSubstr("far worse, at the edge"));
}

TEST(StudyCharts, ASingleReportIsAPoint) {
  StudyData data = small_study();
  const std::string svg = intermediate_chart(data);
  EXPECT_EQ(count_in(svg, "<title>trial 2"), 1u) << "pruned after its first report";
}

TEST(StudyCharts, IntermediateValuesNameTheBestTrialThatReported) {
  EXPECT_THAT(intermediate_chart(small_study()), HasSubstr(">best, trial 1<"))
      << "trial 3 is better but reported nothing";
}

TEST(StudyCharts, ImportanceComesInTheOrderGiven) {
  const std::string svg = importance_chart(small_study());
  EXPECT_LT(svg.find(">act<"), svg.find(">rate<"));
}

TEST(StudyCharts, DrawsTheParametersThatWereAskedFor) {
  StudyData data = small_study();
  data.chosen = {"rate"};
  EXPECT_THAT(slice_charts(data), Not(HasSubstr(">act<")));
  EXPECT_THAT(slice_charts(small_study()), HasSubstr(">act<"));
  EXPECT_THAT(parallel_chart(data), Not(HasSubstr(">act<")));
}

TEST(StudyCharts, ContourOfAParameterAndACategoryNamesBoth) {
  const std::string svg = contour_chart(small_study());
  EXPECT_THAT(svg, HasSubstr("value by act and rate"));
  EXPECT_THAT(svg, HasSubstr(">gelu<"));
  EXPECT_EQ(count_in(svg, "<title>trial 1"), 0u) << "it has no activation";
}

TEST(StudyCharts, ParetoFrontCountsItsTrials) {
  StudyData data = small_study();
  data.objectives = {{"value 0", false}, {"value 1", true}};
  for (ChartTrial& trial : data.trials) trial.values.push_back(7);
  const std::string svg = pareto_chart(data);
  EXPECT_THAT(svg, HasSubstr("Pareto front of s: 1 of 3 trials"));
  EXPECT_THAT(svg, HasSubstr("value 1, to maximize"));
}

TEST(StudyCharts, SaysWhatIsMissing) {
  StudyData data = small_study();
  std::vector<std::string> missing;
  const auto look = [&] {
    missing.clear();
    for (const StudyChart& chart : study_charts()) missing.push_back(chart.missing(data));
    return missing;
  };
  EXPECT_THAT(look(), ElementsAre("", "it needs two objectives", "", "", "", "", ""));
  data.rows.clear();
  EXPECT_THAT(look(), ElementsAre("", "it needs two objectives", "no trial is complete",
                                  "no trial is complete", "no trial is complete",
                                  "no trial is complete", ""));
}

TEST(ObjectiveRange, LeavesOutAStrayAmongMany) {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(i);  // nine in ten are at most 26: limit 78
  values.push_back(1000);
  const ObjectiveRange range = objective_range(values, false);
  EXPECT_EQ(range.low(), 0);
  EXPECT_EQ(range.high(), 29);
  EXPECT_EQ(range.num_beyond, 1u);
  EXPECT_EQ(range.clamp(1000), 29);
  EXPECT_FALSE(range.is_within(1000));
}

TEST(ObjectiveRange, KeepsEachOfAFew) {
  const ObjectiveRange range = objective_range({1, 2, 1000}, true);
  EXPECT_EQ(range.best, 1000);
  EXPECT_EQ(range.worst, 1);
  EXPECT_EQ(range.num_beyond, 0u);
}

TEST(StudyPage, HasEveryChartThatTheStudyHasSomethingFor) {
  Table settings({"setting", "value"});
  settings.row({"seed", "7"});
  const std::string html =
      study_page({.data = small_study(), .figures = {{"trials", "4"}}, .settings = settings});
  for (const StudyChart& chart : study_charts())
    EXPECT_EQ(html.find(">" + chart.title + "</h2>") == html.npos, chart.name == "pareto")
        << chart.name;
  EXPECT_THAT(html, HasSubstr("Study s"));
  EXPECT_THAT(html, Not(HasSubstr("The best trials")));
}

}  // namespace
}  // namespace lathe::report
