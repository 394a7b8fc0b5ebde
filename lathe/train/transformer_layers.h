#pragma once

#include <vector>

#include "lathe/core/graph.h"

namespace lathe::train {

/// What a transformer hands on from layer to layer, found by the form of its graph, whatever its
/// nodes are called.
struct TransformerLayers {
  std::vector<NodeId> attentions;  ///< in their order
  /// What is carried past each of them, to be added to what becomes of its result: the input of the
  /// layer, f32[T,H].
  std::vector<Value> inputs;
  /// The row of each sequence that the head reads of the last layer's output, f32[S,H].
  Value chosen;
};

/// Finds the layers that `logits` depends on, in a packed graph whose rows nobody has chosen early.
/// Fails on a graph that has none, or another form.
TransformerLayers find_transformer_layers(const Graph& graph, Value logits);

/// Which of `count` layers of a teacher stands beside layer `index` of `own`: the last beside the
/// last, the others evenly between. Layers are counted from 1, and 0 is what the first one reads.
std::size_t matching_layer(std::size_t index, std::size_t own, std::size_t count);

}  // namespace lathe::train
