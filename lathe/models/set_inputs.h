#pragma once

#include <string>
#include <vector>

#include "lathe/core/label_kind.h"
#include "lathe/models/family.h"

namespace lathe::models {

/// Gives a graph of the family the inputs named, and no others of the task's; whatever passes put
/// into it stays.
///
/// Without `labels` the loss goes, and with it what only it needed; with them it is attached to the
/// output `logits`, for the kind of labels given. An input that is left out is replaced by what the
/// family says stands in for it, and the other way round. An input that the task does not know is
/// the graph's own and stays. Fails on a name that neither knows and on an input that nothing
/// stands in for.
void set_inputs(Graph& graph, const ModelFamily& family, const TaskRecord& task,
                const std::vector<std::string>& names, LabelKind labels = LabelKind::Class);

/// The names of the graph's inputs, in its order.
std::vector<std::string> input_names(const Graph& graph);

}  // namespace lathe::models
