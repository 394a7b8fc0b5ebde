#pragma once

#include <string>
#include <vector>

#include "lathe/models/family.h"

namespace lathe::models {

/// How many labels a graph's logits tell apart; nullopt where it has no logits.
std::optional<std::int64_t> label_count(const Graph& graph);

/// Makes the task's label layer give `count` logits, and the loss what belongs to that many.
/// Returns the names of the layer's states, whose values must start afresh; none where the graph
/// has that many already. Fails, naming what is there, where the layer's parameters are not plain
/// states of its own or something stands between it and the logits: nothing may be lost.
std::vector<std::string> set_label_count(Graph& graph, const TaskRecord& task, std::int64_t count);

}  // namespace lathe::models
