#pragma once

#include <set>
#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::engine {

/// A graph in two parts: what depends on states alone, and the rest.
///
/// Quantized or decoded weights, folded LoRA paths and the like need computing when a state
/// changes, not when an input arrives: once for inference, once a step in training. In `main` they
/// are states, so that kernels pack them as they pack any weight; `parameters` has the states they
/// come from as inputs and gives each of them as an output of the same name.
struct SplitGraph {
  Graph parameters;  ///< no outputs: nothing was split off
  Graph main;
  std::vector<std::string> sources;  ///< states that `parameters` reads
};
/// `kept`: nodes that stay in `main` although they could be split off; what is split off and reads
/// them computes them, too.
SplitGraph split_parameters(const Graph& graph, const std::set<NodeId>& kept = {});

}  // namespace lathe::engine
