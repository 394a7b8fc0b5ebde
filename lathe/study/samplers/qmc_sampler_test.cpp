#include <gtest/gtest.h>

#include <set>

#include "lathe/study/math/sobol.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

TEST(Sobol, EqualsThePublishedSequence) {
  // From an independent implementation, which goes through the points in Gray code order.
  const auto point = [](std::uint32_t index, int dimension) {
    return sobol(index ^ index >> 1, dimension);
  };
  const int dimensions[] = {0, 1, 2, 7, 30, 63};
  const std::pair<std::uint32_t, std::vector<std::uint32_t>> expected[] = {
      {1, {2147483648, 2147483648, 2147483648, 2147483648, 2147483648, 2147483648}},
      {2, {3221225472, 1073741824, 1073741824, 3221225472, 1073741824, 3221225472}},
      {5, {3758096384, 3758096384, 536870912, 1610612736, 3758096384, 2684354560}},
      {100, {1778384896, 1107296256, 3321888768, 2046820352, 3053453312, 2785017856}},
      {1000, {943718400, 415236096, 2227175424, 3862953984, 633339904, 1916796928}}};
  for (const auto& [index, values] : expected)
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(point(index, dimensions[i]), values[i]) << index << ", " << dimensions[i];
}

TEST(Sobol, ScramblingKeepsEveryStretchOfEqualLengthEquallyFull) {
  for (int dimension = 0; dimension < kSobolDimensions; ++dimension) {
    std::set<int> cells;
    for (std::uint32_t i = 0; i < 256; ++i)
      cells.insert(static_cast<int>(scrambled_sobol(i, dimension, 42) * 256));
    EXPECT_EQ(cells.size(), 256u) << "dimension " << dimension;
  }
  EXPECT_NE(scrambled_sobol(0, 0, 1), scrambled_sobol(0, 0, 2));
}

TEST(QmcSampler, VisitsEveryPairOfCellsOnce) {
  const Space space = {{"x", shared(IntDistribution{0, 15})},
                       {"y", shared(CategoricalDistribution{{1.0, 2.0, 3.0, 4.0}})}};
  History history({Direction::Minimize});
  run_sampler("qmc", space, history, 64, 7, [](const Assignment&) { return std::vector{0.0}; });
  std::set<std::pair<double, double>> pairs;
  for (const TrialRecord& trial : history.trials())
    pairs.insert({trial.find("x")->value, trial.find("y")->value});
  EXPECT_EQ(pairs.size(), 64u);
}

TEST(QmcSampler, LearnsTheSpaceFromTheFirstTrialWhereNoneWasDeclared) {
  const Space space = {{"x", shared(FloatDistribution{})}, {"y", shared(FloatDistribution{})}};
  History history({Direction::Minimize});
  run_sampler(
      "qmc", space, history, 16, 7, [](const Assignment&) { return std::vector{0.0}; }, false,
      false);
  const Assignment& second = history.trials()[1].parameters;
  EXPECT_EQ(second[0].value, scrambled_sobol(1, 0, 7));
  EXPECT_EQ(second[1].value, scrambled_sobol(1, 1, 7));
}

}  // namespace
}  // namespace lathe::study
