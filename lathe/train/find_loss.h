#pragma once

#include "lathe/core/graph.h"

namespace lathe::train {

/// The sum and the count that a graph's output `loss` is the quotient of.
struct Loss {
  Value sum, count;
};

/// Finds them; fails when the graph has no loss.
Loss find_loss(const Graph& graph);

}  // namespace lathe::train
