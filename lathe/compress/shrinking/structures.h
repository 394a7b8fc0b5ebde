#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/core/graph.h"

/// Parts of a graph that can lose neurons or heads: all that makes, passes on and reads a run of
/// features. Found by operand roles and by what ops say of themselves, never by names.
namespace lathe::compress {

/// Outputs of a layer that are features of a structure.
struct FeatureMaker {
  NodeId layer;
  std::int64_t first = 0;  ///< the output that is feature 0
  /// Of attention: Query, Key or Content, whatever the layer makes; Other for neurons.
  OperandRole role = OperandRole::Other;
};

/// A node on the way to an attention that knows how many features there are.
struct FeaturePassage {
  NodeId node;          ///< a split, a rope
  FeatureMaker source;  ///< a layer that makes its features; for a split, those of its operand
};

/// A feed-forward part or an attention, with the layers before and behind it.
struct Structure {
  std::string name;  ///< the attention's, or the first layer's
  NodeId attention;  ///< no node: neurons
  std::vector<FeatureMaker> makers = {};
  std::vector<NodeId> readers = {};           ///< layers that multiply the features
  std::vector<NodeId> between = {};           ///< all other nodes that the features pass
  std::vector<FeaturePassage> passages = {};  ///< some of those
  std::int64_t features = 0;                  ///< that the readers read
  /// Of attention: heads of queries and of keys, and features of a head.
  std::int64_t heads = 0, shared_heads = 0, head_size = 0;

  bool is_attention() const { return attention.index >= 0; }
};

/// What was found, and a line for each attention that cannot lose a head whatever is masked.
struct Structures {
  std::vector<Structure> found;
  std::vector<std::string> refused;
};
Structures find_structures(const Graph& graph);

}  // namespace lathe::compress
