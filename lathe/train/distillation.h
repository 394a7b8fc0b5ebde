#pragma once

#include "lathe/core/graph.h"
#include "lathe/io/model.h"

namespace lathe::train {

/// Learning from another model's answers as well as from labels (Hinton et al. 2015).
struct DistillationOptions {
  const io::Model* teacher = nullptr;  ///< null: from labels alone
  double weight = 0.5;                 ///< of the teacher's part of the loss
  double temperature = 2;              ///< both models' logits are divided by it
};

/// Adds the teacher to a packed classifier's graph, without dropout and with its states as buffers
/// called `teacher.NAME`, and returns the loss to train by in place of `loss_sum`:
///
///     (1 - weight) loss_sum + weight temperature^2 * cross-entropy(teacher, student)
///
/// summed over sequences. Nothing flows back into the teacher.
Value add_distillation(Graph& graph, State& state, Value loss_sum,
                       const DistillationOptions& options);

}  // namespace lathe::train
