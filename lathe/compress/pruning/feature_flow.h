#pragma once

#include <optional>
#include <vector>

#include "lathe/core/graph.h"

/// Which layers make the features of a value (its last axis) and which ones read them, where each
/// feature stays in its place on the way: through functions of single elements, dropout, rounding.
/// A feature that nobody else reads can be taken away on both sides.
namespace lathe::compress {

/// Whether every element of a node's result is made from the same element of its operands.
bool keeps_features(const Graph& graph, NodeId id);

/// Layers that make the same features (the gate and the content of a gated part), and those that
/// read them.
struct FeatureFlow {
  std::vector<NodeId> makers, readers;  ///< in topological order
};
/// The flow that a layer's outputs are part of; nullopt where something else makes or reads them.
std::optional<FeatureFlow> trace_features(const Graph& graph, NodeId layer);

/// The layers that read a node's result as their input; nullopt where something else reads it.
std::optional<std::vector<NodeId>> trace_readers(const Graph& graph, NodeId node);

/// A run of a layer's outputs.
struct FeatureSource {
  NodeId layer;
  std::int64_t first = 0;
  std::vector<NodeId> passed = {};  ///< nodes on the way, the layer included
};
/// The layer whose outputs a value is, or a part of them. What turns pairs within a head (`rope`)
/// may stand between the two as well. Nullopt where the value comes from something else.
std::optional<FeatureSource> trace_source(const Graph& graph, Value value);

}  // namespace lathe::compress
