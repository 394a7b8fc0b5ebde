#include "lathe/study/unit_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

const FloatDistribution kPlain{.low = -1, .high = 3};
const FloatDistribution kLog{.low = 0.01, .high = 100, .log = true};
const FloatDistribution kSteps{.low = 0, .high = 1, .step = 0.25};
const IntDistribution kWhole{.low = 1, .high = 4};
const IntDistribution kWholeLog{.low = 1, .high = 3, .log = true};
const CategoricalDistribution kChoices{{std::string("a"), std::string("b"), std::string("c")}};

TEST(UnitSpace, PlacesValuesBetweenZeroAndOne) {
  EXPECT_EQ(to_unit(kPlain, -1), 0);
  EXPECT_EQ(to_unit(kPlain, 2), 0.75);
  EXPECT_DOUBLE_EQ(to_unit(kLog, 1), 0.5);
  EXPECT_DOUBLE_EQ(to_unit(kSteps, 0.25), 0.3);  // the second of five cells
  EXPECT_DOUBLE_EQ(to_unit(kWhole, 4), 0.875);
  EXPECT_DOUBLE_EQ(to_unit(kChoices, 1), 0.5);
}

TEST(UnitSpace, ComesBackToEveryValueFromAnywhereInItsCell) {
  for (const Distribution& distribution : std::vector<Distribution>{
           kSteps, kWhole, kWholeLog, kChoices, IntDistribution{-3, 17, false, 5}}) {
    const std::int64_t count = *num_values(distribution);
    double previous = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = from_unit(distribution, previous + 1e-9);
      const Cell cell = *unit_cell(distribution, value);
      EXPECT_NEAR(cell.low, previous, 1e-12);
      EXPECT_EQ(from_unit(distribution, cell.high - 1e-9), value);
      EXPECT_EQ(from_unit(distribution, to_unit(distribution, value)), value);
      previous = cell.high;
    }
    EXPECT_NEAR(previous, 1, 1e-12);
  }
}

TEST(UnitSpace, GivesAPlaceOutsideToTheNearestValue) {
  EXPECT_EQ(from_unit(kPlain, 1.5), 3);
  EXPECT_EQ(from_unit(kWhole, -0.5), 1);
  EXPECT_EQ(from_unit(kChoices, 1), 2);
}

TEST(UnitSpace, MapsTrialsThatHaveAllItsParameters) {
  const auto whole = shared(kWhole);
  const auto choices = shared(kChoices);
  const UnitSpace space({{"depth", whole}, {"kind", choices}});
  EXPECT_THAT(space.to_unit({{"kind", shared(kChoices), 2}, {"depth", whole, 1}}).value(),
              ElementsAre(DoubleEq(0.125), DoubleEq(2.5 / 3)));
  EXPECT_FALSE(space.to_unit({{"depth", whole, 1}}).has_value());
  const auto other = shared(IntDistribution{1, 5});
  EXPECT_FALSE(space.to_unit({{"depth", other, 1}, {"kind", choices, 0}}).has_value());

  const Assignment back = space.from_unit(std::vector<double>{0.3, 0.9});
  EXPECT_EQ(find_parameter(back, "depth")->value, 2);
  EXPECT_EQ(find_parameter(back, "kind")->value, 2);
}

}  // namespace
}  // namespace lathe::study
