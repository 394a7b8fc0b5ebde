#pragma once

#include <span>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::ops {

/// Executes one node by its op's reference kernel. There is a tensor for each operand, nullptr
/// where it is `none`. Fails naming the node when a tensor is not what the operand's type says
/// under `symbols`, or when the kernel refuses its values.
std::vector<Tensor> run_reference(const Graph& graph, NodeId node,
                                  std::span<const Tensor* const> inputs,
                                  const SymbolValues& symbols);

}  // namespace lathe::ops
