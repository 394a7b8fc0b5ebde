#pragma once

#include <optional>
#include <set>
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

/// The nodes that multiply parameters with a weight and give data to others, such as the layers
/// that project the rows of a table of distances. They are computed when a state changes, and no
/// data passes through them; their weights can be rounded all the same.
std::set<NodeId> layers_of_parameters(const Graph& graph);

/// Who works with a node's result: its readers, or the readers of what is computed from a
/// parameter, such as a rounded weight times its mask. `parameters` are the graph's.
std::vector<Use> working_uses(const Graph& graph, const Parameters& parameters, NodeId id);

}  // namespace lathe::compress
