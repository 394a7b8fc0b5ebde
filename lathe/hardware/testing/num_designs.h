#pragma once

#include <algorithm>
#include <cstdlib>

namespace lathe::hardware::testing {

/// How many designs a test draws: as many as the environment says, as `make test-hardware` does.
inline int num_designs(int by_default, int at_most = 1 << 20) {
  const char* given = std::getenv("LATHE_RANDOM_DESIGNS");
  return std::min(at_most, given == nullptr ? by_default : std::max(1, std::atoi(given)));
}

}  // namespace lathe::hardware::testing
