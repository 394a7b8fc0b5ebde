#include "lathe/search/front_comparison.h"

#include <gtest/gtest.h>

#include "lathe/search/front_charts.h"

namespace lathe::search {
namespace {

Finalist finalist(int trial, const char* format, double bits, double loss, double test) {
  Finalist result{.sampler = format == nullptr ? "auto" : "uniform",
                  .trial = trial,
                  .accuracies = {1 - loss},
                  .losses = {loss},
                  .costs = {{"weight-bits", bits}},
                  .is_uniform = format != nullptr,
                  .whole_accuracies = {test}};
  if (format != nullptr)
    result.candidate.formats["layer"] = {{compress::TensorRole::Weights, format},
                                         {compress::TensorRole::Inputs, "int:8"}};
  return result;
}

SearchResult some_result() {
  SearchResult result;
  result.front = "weight-bits";
  result.finalists = {
      finalist(0, "int:4", 4, 0.250, 0.8991),   finalist(1, "int:2", 2, 0.280, 0.8800),
      finalist(2, "binary", 1, 0.320, 0.8000),  finalist(3, nullptr, 3, 0.251, 0.8990),
      finalist(4, nullptr, 3.5, 0.260, 0.9100),  // the best by tests alone
      finalist(5, nullptr, 2, 0.270, 0.8850)};
  return result;
}

TEST(FrontComparison, ChoosesByLossesHeldOutOfThoseThatCostNoMore) {
  SearchResult result = some_result();
  const std::vector<UniformRival> rivals = compare_with_uniform(result);
  ASSERT_EQ(rivals.size(), 3U);
  const auto trial = [](const Finalist* each) { return each == nullptr ? -1 : each->trial; };
  // The cheapest first: binary has no rival, int:2 is beaten, int:4 is on the front.
  const std::vector<std::vector<int>> expected = {{2, 2, -1}, {1, 5, 5}, {0, 0, 3}};
  for (std::size_t i = 0; i < rivals.size(); ++i)
    EXPECT_EQ(
        (std::vector{trial(rivals[i].uniform), trial(rivals[i].front), trial(rivals[i].mixed)}),
        expected[i]);
  EXPECT_EQ(front_summary(rivals),
            "the front is above 1 of 3 uniform formats, goes through 2 of them, and is at most "
            "0.000 point below; mixed formats alone are above 1 of the 2 that cost no less, and at "
            "most 0.010 point below");
  // Without tests the rows held out are what there is.
  for (Finalist& each : result.finalists) each.whole_accuracies.clear();
  EXPECT_NEAR(*rivals[2].gain_of(rivals[2].mixed), -0.001, 1e-12);
}

TEST(FrontComparison, ShowsEachUniformFormatWithTheFrontAndMixedOnesBeside) {
  const SearchResult result = some_result();
  EXPECT_EQ(front_table(compare_with_uniform(result), result.front).to_markdown(),
            "| all layers alike | weight-bits | loss held out | test | the front there | "
            "weight-bits | loss held out | test | points above | best mixed | weight-bits | "
            "loss held out | test | points above |\n"
            "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | "
            "---: | ---: |\n"
            "| binary of int:8 | 1 | 0.3200 | 0.8000 | itself | 1 | 0.3200 | 0.8000 | +0.000 | - | "
            "- | - | - | - |\n"
            "| int:2 of int:8 | 2 | 0.2800 | 0.8800 | mixed, auto 5 | 2 | 0.2700 | 0.8850 | +0.500 "
            "| mixed, auto 5 | 2 | 0.2700 | 0.8850 | +0.500 |\n"
            "| int:4 of int:8 | 4 | 0.2500 | 0.8991 | itself | 4 | 0.2500 | 0.8991 | +0.000 | "
            "mixed, auto 3 | 3 | 0.2510 | 0.8990 | -0.010 |\n");
}

TEST(FrontComparison, DrawsARowForEachFormatAndSaysWhatIsOutOfSight) {
  const SearchResult result = some_result();
  const std::string rows = rivals_chart(compare_with_uniform(result), result.front);
  for (const char* const text :
       {"binary 1.00", "int:2 2.00", "int:4 4.00", "1 further below left out"})
    EXPECT_NE(rows.find(text), std::string::npos) << text;
  const std::string points = finalists_chart(result);
  for (const char* const text : {"all layers alike", "mixed", "on the front", "left out"})
    EXPECT_NE(points.find(text), std::string::npos) << text;
}

TEST(FrontComparison, IsOfFrontsAlone) {
  SearchResult result = some_result();
  result.front.clear();
  EXPECT_TRUE(compare_with_uniform(result).empty());
}

}  // namespace
}  // namespace lathe::search
