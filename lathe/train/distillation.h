#pragma once

#include "lathe/core/graph.h"

namespace lathe::train {

/// Learning from what teachers answer as well as from labels (Hinton et al. 2015).
struct DistillationOptions {
  bool has_soft_labels = false;  ///< feeds hold the teachers' answers (soft_labels.h)
  double weight = 0.5;           ///< of the soft labels in the loss; the labels have the rest
  double temperature = 2;        ///< what the logits behind the soft labels were divided by
};

/// Fails on weights and temperatures that make no sense.
void check_distillation(const DistillationOptions& options);

/// Gives a classifier's graph, in the form that sources feed, the loss to be taught by, per
/// sequence:
///
///     (1 - weight) labels' loss + weight temperature^2 cross-entropy(soft labels, model)
///
/// where the model's logits are divided by the temperature. The square keeps the size of the
/// gradients when the temperature changes.
void add_distillation(Graph& graph, const DistillationOptions& options);

}  // namespace lathe::train
