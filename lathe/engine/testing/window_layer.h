#pragma once

// For the tests of 3 x 3 windows one pixel apart: a layer's sizes, and numbers for it.

#include <cstdint>
#include <random>
#include <vector>

#include "lathe/engine/cpu/convolution.h"

namespace lathe::engine {

struct WindowLayer {
  std::int64_t count, channels, filters, height, width, pad;

  Convolution convolution() const {
    return {{count, channels, height, width, true},
            {count, filters, height + 2 * pad - 2, width + 2 * pad - 2, true},
            1,
            {{3, 3}, {1, 1}, {pad, pad, pad, pad}, {1, 1}}};
  }
};

/// Between -1 and 1.
inline std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random()) * 0x1p-31f - 1;
  return values;
}

}  // namespace lathe::engine
