#include "lathe/study/math/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lathe::study {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Peels off whoever is not dominated, again and again.
std::vector<int> ranks_by_peeling(const std::vector<Losses>& points) {
  std::vector<int> ranks(points.size(), -1);
  for (int rank = 0, left = static_cast<int>(points.size()); left > 0; ++rank) {
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (ranks[i] >= 0) continue;
      bool is_dominated = false;
      for (std::size_t j = 0; j < points.size(); ++j)
        is_dominated |= ranks[j] < 0 && dominates(points[j], points[i]);
      if (!is_dominated) front.push_back(i);
    }
    for (const std::size_t i : front) ranks[i] = rank;
    left -= static_cast<int>(front.size());
  }
  return ranks;
}

TEST(Pareto, DominationNeedsOneBetterAndNoneWorse) {
  EXPECT_TRUE(dominates(Losses{1, 2}, Losses{1, 3}));
  EXPECT_FALSE(dominates(Losses{1, 2}, Losses{1, 2}));
  EXPECT_FALSE(dominates(Losses{1, 3}, Losses{2, 2}));
}

TEST(Pareto, TurnsMaximizedValuesIntoLosses) {
  const std::vector<double> values = {0.5, 7, NAN};
  const std::vector<Direction> directions = {Direction::Minimize, Direction::Maximize,
                                             Direction::Maximize};
  EXPECT_THAT(to_losses(values, directions), ElementsAre(0.5, -7, kInfinity));
}

TEST(Pareto, RanksAHandMadeExample) {
  const std::vector<Losses> points = {{1, 5}, {2, 2}, {5, 1}, {3, 3}, {2, 2}, {4, 4}, {5, 5}};
  EXPECT_THAT(non_dominated_ranks(points), ElementsAre(0, 0, 0, 1, 0, 2, 3));
}

TEST(Pareto, RanksAsPeelingDoesInOneToFiveDimensionsWithTies) {
  std::mt19937 generator(1);
  for (int dimension = 1; dimension <= 5; ++dimension) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      // Few distinct coordinates, so that equal points and shared coordinates are common.
      std::uniform_int_distribution<int> coordinate(0, repeat % 2 == 0 ? 4 : 30);
      std::vector<Losses> points(60, Losses(dimension));
      for (Losses& point : points)
        for (double& value : point) value = coordinate(generator);
      EXPECT_EQ(non_dominated_ranks(points), ranks_by_peeling(points));
    }
  }
}

TEST(Pareto, RanksWhateverHoldsBeforeWhateverViolates) {
  const std::vector<Losses> points = {{9, 9}, {1, 1}, {0, 0}, {8, 8}, {2, 2}};
  const std::vector<double> violations = {0, 3, 3, 0, 0.5};
  EXPECT_THAT(non_dominated_ranks(points, violations), ElementsAre(1, 3, 3, 0, 2));
  EXPECT_THAT(non_dominated(points, violations), ElementsAre(3));
}

TEST(Pareto, HasNoFrontWhenEverythingViolates) {
  const std::vector<Losses> points = {{9, 9}, {1, 1}};
  const std::vector<double> violations = {1, NAN};
  EXPECT_THAT(non_dominated_ranks(points, violations), ElementsAre(0, 1));
  EXPECT_TRUE(non_dominated(points, violations).empty());
}

TEST(Pareto, MeasuresCrowdingByTheGapBetweenNeighbours) {
  // Extent 10 and 5: the inner points lie between gaps (0..4, 5..1) and (1..10, 3..0).
  const std::vector<Losses> front = {{0, 5}, {4, 1}, {1, 3}, {10, 0}};
  EXPECT_THAT(crowding_distances(front), ElementsAre(kInfinity, 0.9 + 0.6, 0.4 + 0.8, kInfinity));
}

TEST(Pareto, AcceptsNoPoints) {
  EXPECT_TRUE(non_dominated_ranks({}).empty());
  EXPECT_TRUE(crowding_distances({}).empty());
}

}  // namespace
}  // namespace lathe::study
