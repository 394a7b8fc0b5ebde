#pragma once

#include <optional>
#include <string>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// The mask that a parameter is multiplied with, as it is or rounded; nullopt where it has none.
std::optional<NodeId> find_mask(const Graph& graph, NodeId parameter);

/// Every mask of a parameter, by the parameter's name.
State find_masks(const Graph& graph, const State& state);

/// Sets to zero what a mask of the tensor's shape takes out of it.
void clear_pruned(Tensor& tensor, const Tensor& mask);

/// Multiplies parameters by masks of ones and zeros, given by the parameters' names and of their
/// shapes, and sets what they take out to zero in the parameters themselves.
///
/// A mask is a state `<parameter>.mask` of role mask, and everybody who read the parameter reads
/// the product. It stands before a quantizer, whose format rounds zero to zero; behind one whose
/// format has no zero. It covers a LoRA path beside the weight too. A mask that was there before
/// keeps its zeros and gets the new ones.
void insert_masks(Graph& graph, State& state, const State& masks);

}  // namespace lathe::compress
