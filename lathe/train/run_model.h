#pragma once

#include "lathe/engine/executor.h"
#include "lathe/io/model.h"

namespace lathe::train {

/// Runs a model on tensors named as its inputs are, in the padded form of its graph, and returns
/// its outputs by name.
///
/// Without `labels` there is no loss. An input that the task knows and the graph lacks is added. A
/// tensor of another type is taken where every number survives the change: the 64-bit ids of other
/// programs are. Fails in one line on an input that is unknown, missing or of another shape,
/// and on a mask of keys that holds other numbers than 0 and 1 or, for an imported graph, none that
/// keeps a key.
Feed run_model(const io::Model& model, const Feed& tensors,
               const engine::ExecutionOptions& execution);

}  // namespace lathe::train
