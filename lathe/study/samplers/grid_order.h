#pragma once

#include <vector>

#include "lathe/study/math/keyed_permutation.h"
#include "lathe/study/samplers/grid_points.h"

namespace lathe::study {

/// The order in which a grid is walked: random, and even in what others depend on. Networks of
/// eight layers, each with choices of its own, are a million times as many as those of four: in an
/// order of all points alike nobody would ever see one of four. So values that decide what else
/// there is take turns, until their points are over.
class GridOrder {
 public:
  GridOrder(const GridPoints& points, std::uint64_t seed);
  /// The number of the point at a position of the order.
  std::uint64_t number(const GridPoints& points, std::uint64_t position) const;

 private:
  std::vector<GridPoints::Part> parts_;
  std::vector<KeyedPermutation> orders_;
};

}  // namespace lathe::study
