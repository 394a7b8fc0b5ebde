#include "lathe/study/math/hypervolume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace lathe::study {
namespace {

using ::testing::ElementsAre;

// Whole coordinates make space a grid of unit cells: count those that some point dominates.
double volume_by_cells(const std::vector<Losses>& points, int reference) {
  const auto dimension = points[0].size();
  std::vector<int> cell(dimension, 0);
  double count = 0;
  while (true) {
    for (const Losses& point : points) {
      bool is_covered = true;
      for (std::size_t k = 0; k < dimension; ++k) is_covered &= point[k] <= cell[k];
      if (is_covered) {
        ++count;
        break;
      }
    }
    std::size_t k = 0;
    while (k < dimension && ++cell[k] == reference) cell[k++] = 0;
    if (k == dimension) return count;
  }
}

std::vector<Losses> random_points(std::mt19937& generator, int count, int dimension, int high) {
  std::uniform_int_distribution<int> coordinate(0, high);
  std::vector<Losses> points(count, Losses(dimension));
  for (Losses& point : points)
    for (double& value : point) value = coordinate(generator);
  return points;
}

TEST(Hypervolume, IsTheAreaUnderAStaircase) {
  const std::vector<Losses> points = {{1, 3}, {2, 1}, {3, 3}, {9, 0}};
  // 3 x 1 above (1, 3), 2 x 2 more below it; (3, 3) is covered and (9, 0) lies outside.
  EXPECT_EQ(hypervolume(points, {4, 4}), 7);
}

TEST(Hypervolume, IsZeroWithoutPointsBelowTheReference) {
  EXPECT_EQ(hypervolume({}, {4, 4}), 0);
  EXPECT_EQ(hypervolume(std::vector<Losses>{{4, 0}, {5, 5}}, {4, 4}), 0);
}

TEST(Hypervolume, CountsTheCellsInOneToSixDimensions) {
  std::mt19937 generator(2);
  for (int dimension = 1; dimension <= 6; ++dimension) {
    const int reference = dimension <= 3 ? 9 : 5;
    for (int repeat = 0; repeat < 30; ++repeat) {
      // Up to the reference itself, so that some points lie outside.
      const auto points = random_points(generator, 1 + repeat, dimension, reference);
      EXPECT_EQ(hypervolume(points, Losses(dimension, reference)),
                volume_by_cells(points, reference))
          << "dimension " << dimension << ", repeat " << repeat;
    }
  }
}

TEST(Hypervolume, ContributionsAreWhatIsLostWithAPoint) {
  std::mt19937 generator(3);
  for (int dimension = 2; dimension <= 5; ++dimension) {
    const auto points = random_points(generator, 12, dimension, 6);
    const Losses reference(dimension, 6);
    const std::vector<double> contributions = hypervolume_contributions(points, reference);
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::vector<Losses> others = points;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(contributions[i], hypervolume(points, reference) - hypervolume(others, reference));
    }
  }
}

TEST(Hypervolume, SelectsTheLargestGainEachTime) {
  std::mt19937 generator(4);
  for (int dimension = 2; dimension <= 4; ++dimension) {
    const auto points = random_points(generator, 25, dimension, 7);
    const Losses reference(dimension, 8);
    std::vector<int> expected;
    std::vector<Losses> chosen;
    while (expected.size() < 10) {
      int best = -1;
      double best_volume = -1;
      for (int i = 0; i < static_cast<int>(points.size()); ++i) {
        if (std::find(expected.begin(), expected.end(), i) != expected.end()) continue;
        chosen.push_back(points[i]);
        const double volume = hypervolume(chosen, reference);
        chosen.pop_back();
        if (volume > best_volume) best = i;
        best_volume = std::max(best_volume, volume);
      }
      expected.push_back(best);
      chosen.push_back(points[best]);
    }
    EXPECT_EQ(select_by_hypervolume(points, 10, reference), expected);
  }
}

TEST(Hypervolume, SelectsAtMostWhatIsThere) {
  const std::vector<Losses> points = {{1, 1}, {0, 3}};
  EXPECT_THAT(select_by_hypervolume(points, 5, {4, 4}), ElementsAre(0, 1));
}

}  // namespace
}  // namespace lathe::study
