#pragma once

// For the tests of studies: one objective, and a small space.

#include <string>
#include <vector>

#include "lathe/study/study.h"
#include "lathe/study/testing/finished_trials.h"

namespace lathe::study {

inline const std::vector<Direction> kMinimize = {Direction::Minimize};

inline Space small_space() {
  const auto layer = CategoricalDistribution{{std::string("int"), std::string("fixed")}};
  return {{.name = "layer", .distribution = shared(layer)},
          {.name = "width",
           .distribution = shared(IntDistribution{.low = 2, .high = 8, .step = 2}),
           .parent = "layer",
           .parent_values = {0}},
          {.name = "lr", .distribution = shared(FloatDistribution{.low = 1e-3, .high = 1})}};
}

inline Outcome complete(double value) {
  return {.values = {value}};
}

}  // namespace lathe::study
