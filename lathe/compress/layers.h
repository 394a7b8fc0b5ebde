#pragma once

#include <optional>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/parameters.h"

namespace lathe::compress {

/// A node that multiplies what it is fed with by a parameter: a linear, a convolution, a product.
struct Layer {
  NodeId node;
  std::size_t input = 0, weight = 0;     ///< operands
  std::optional<std::size_t> bias = {};  ///< nothing where it has none
};
/// Every layer, in topological order.
std::vector<Layer> find_layers(const Graph& graph);

/// Who works with a node's result: its readers, or the readers of what is computed from a
/// parameter, such as a rounded weight times its mask. `parameters` are the graph's.
std::vector<Use> working_uses(const Graph& graph, const Parameters& parameters, NodeId id);

}  // namespace lathe::compress
