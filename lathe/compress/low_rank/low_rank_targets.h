#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::compress {

/// A weight that can be factorised: a state that layers multiply rows with, or that rows are looked
/// up in, and nobody reads otherwise.
struct LowRankTarget {
  NodeId state;
  std::vector<NodeId> readers;
  std::int64_t axis = -1;  ///< that makes it [rows, columns], see channel_matrix.h
  bool is_table = false;   ///< rows are looked up in it, whoever else multiplies with it
};

/// What can be factorised of the layers and lookups that match, and a line for each that cannot.
struct LowRankTargets {
  std::vector<LowRankTarget> found;
  std::vector<std::string> notes;
};
/// Looks for layers and lookups by patterns (RE2) in their names; fails when one matches nothing.
LowRankTargets find_low_rank_targets(const Graph& graph, const std::vector<std::string>& patterns);

/// Whether a node looks rows up, and does not multiply.
bool is_lookup(const Graph& graph, NodeId reader);
/// The operand of a layer or lookup that is its weight or table.
std::size_t weight_operand(const Graph& graph, NodeId reader);
/// The axis that makes a layer's weight [outputs, inputs], or a table [rows, features].
std::int64_t rows_axis(const Graph& graph, NodeId reader);

}  // namespace lathe::compress
