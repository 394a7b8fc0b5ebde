#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "lathe/study/math/uniform_source.h"

namespace lathe::study {

/// A whole number from 0 to `count` - 1.
inline int draw_below(UniformSource& random, int count) {
  const int index = static_cast<int>(random.next() * count);
  return index < count ? index : count - 1;
}

/// A number of mean 0 and deviation 1 (Box and Muller's, with one of its two).
inline double draw_normal(UniformSource& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.next()));
  return radius * std::cos(2 * std::numbers::pi * random.next());
}

/// 0 to `count` - 1 in random order.
inline std::vector<int> draw_order(UniformSource& random, int count) {
  std::vector<int> order;
  for (int i = 0; i < count; ++i) {
    const int place = draw_below(random, i + 1);
    order.push_back(i);
    std::swap(order[i], order[place]);
  }
  return order;
}

}  // namespace lathe::study
