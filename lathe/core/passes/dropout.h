#pragma once

#include "lathe/core/graph.h"

namespace lathe {

/// How much dropout a graph has: nodes of its own, and rates above zero inside other nodes.
struct DropoutCount {
  int nodes = 0;
  int attributes = 0;
};

DropoutCount count_dropout(const Graph& graph);

}  // namespace lathe
