#pragma once

#include <string>

/// Which way training moves weights (Sanh et al. 2020): the sum over steps of -w dL/dw grows where
/// a weight moves away from zero, and falls where it moves towards it. A pruned weight is 0 and its
/// sum stands still.
namespace lathe::train {

/// The state of role moment that a training graph sums a parameter's movement in.
inline std::string movement_name(const std::string& parameter) {
  return "movement." + parameter;
}

}  // namespace lathe::train
