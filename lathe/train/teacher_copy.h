#pragma once

#include <string>
#include <vector>

#include "lathe/io/model.h"
#include "lathe/train/transformer_layers.h"

namespace lathe::train {

/// Copies the layers of a teacher into a packed graph: without dropout, fed by the graph's own
/// inputs, its states in `state` under names that begin with `prefix`. Their names are added to
/// `states`: nothing that a step does may change them.
TransformerLayers copy_teacher(Graph& graph, State& state, const io::Model& teacher,
                               const std::string& prefix, std::vector<std::string>& states);

}  // namespace lathe::train
