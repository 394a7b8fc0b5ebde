#pragma once

#include <set>
#include <string>

#include "lathe/core/graph.h"

namespace lathe::report {

/// What a picture of a graph shows.
struct DrawOptions {
  std::string title = {};    ///< above the picture; none when empty
  bool show_states = false;  ///< draw states as nodes instead of listing them in their readers
  bool show_shapes = true;   ///< write on each edge what flows through it
  int cluster_depth = 2;     ///< how many boxes of module paths may stand inside each other
  /// Of more than this many alike numbered modules in a row, only the first is drawn in full and
  /// the others share one box; 0 draws them all.
  int fold_repeats_above = 4;
  std::set<std::string> highlights = {};  ///< names of nodes to emphasise
};

/// The graph as DOT text for Graphviz, top to bottom: boxes coloured by what their op is for, ovals
/// for inputs and outputs, boxes around modules. Quantizers are badges on the edges that they round
/// and formats beside the parameters that they are of. The same graph gives the same text.
/// Fails on a highlight that is no node.
std::string to_dot(const Graph& graph, const DrawOptions& options = {});

}  // namespace lathe::report
