#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::engine {

/// A pair of nodes that fusing looked at and left as they are.
struct FusionNote {
  std::string first, second;  ///< names of the lowered graph
  std::string reason;
  bool operator==(const FusionNote&) const = default;
};

/// What a lowered graph still has of the patterns that are fused elsewhere: a linear layer with a
/// function of its elements or an addition behind it, and an addition with a layer norm.
std::vector<FusionNote> explain_unfused(const Graph& lowered);

}  // namespace lathe::engine
