#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lathe/core/graph.h"

namespace lathe::train {

/// A buffer of a batch norm and the value of a step that it is to be moved towards.
struct SeenStatistic {
  NodeId buffer;
  Value seen;
};

/// Lets batch norms use the statistics of the batch, as they are trained, in place of those that
/// they keep; returns what is to be kept of each. A norm whose buffers `is_frozen` names goes on
/// using them, and so does one whose statistics are no buffers of its own.
std::vector<SeenStatistic> use_batch_statistics(
    Graph& graph, const std::function<bool(const std::string&)>& is_frozen);

}  // namespace lathe::train
