#include "lathe/search/front_comparison.h"

#include <gtest/gtest.h>

namespace lathe::search {
namespace {

Finalist finalist(int trial, const char* format, double bits, double held_out, double test) {
  Finalist result{.sampler = format == nullptr ? "auto" : "uniform",
                  .trial = trial,
                  .accuracies = {held_out},
                  .costs = {{"weight-bits", bits}},
                  .is_uniform = format != nullptr,
                  .whole_accuracies = {test}};
  if (format != nullptr)
    result.candidate.formats["layer"] = {{compress::TensorRole::Weights, format},
                                         {compress::TensorRole::Inputs, "int:8"}};
  return result;
}

TEST(FrontComparison, ChoosesByHeldOutRowsOfThoseThatCostNoMore) {
  SearchResult result;
  result.front = "weight-bits";
  result.finalists = {
      finalist(0, "int:4", 4, 0.90, 0.8991),   finalist(1, "int:2", 2, 0.88, 0.8800),
      finalist(2, "binary", 1, 0.80, 0.8000),  finalist(3, nullptr, 3, 0.91, 0.8990),
      finalist(4, nullptr, 3.5, 0.90, 0.9100),  // the best by tests alone
      finalist(5, nullptr, 2, 0.89, 0.8850)};
  const std::vector<UniformRival> rivals = compare_with_uniform(result);
  EXPECT_EQ(front_table(rivals, result.front).to_text(),
            "all layers alike  weight-bits  held out    test  best mixed of no more  weight-bits  "
            "held out    test  gain in points\n"
            "----------------  -----------  --------  ------  ---------------------  -----------  "
            "--------  ------  --------------\n"
            "binary of int:8             1    0.8000  0.8000  -                                -  "
            "       -       -               -\n"
            "int:2 of int:8              2    0.8800  0.8800  auto 5                           2  "
            "  0.8900  0.8850          +0.500\n"
            "int:4 of int:8              4    0.9000  0.8991  auto 3                           3  "
            "  0.9100  0.8990          -0.010\n");
  EXPECT_EQ(front_summary(rivals),
            "mixed formats are above 1 of 2 uniform ones, and at most 0.010 point below");
  // Without tests the rows held out are what there is.
  for (Finalist& each : result.finalists) each.whole_accuracies.clear();
  EXPECT_EQ(front_summary(compare_with_uniform(result)),
            "mixed formats are above 2 of 2 uniform ones, and at most 0.000 point below");
}

TEST(FrontComparison, IsOfFrontsAlone) {
  SearchResult result;
  result.finalists = {finalist(0, "int:4", 4, 0.90, 0.8991)};
  EXPECT_TRUE(compare_with_uniform(result).empty());
}

}  // namespace
}  // namespace lathe::search
