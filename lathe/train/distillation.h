#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/io/model.h"

namespace lathe::train {

/// Learning from teachers as well as from labels: from what they answer (Hinton et al. 2015), and
/// from how they come to it.
struct DistillationOptions {
  bool has_soft_labels = false;  ///< feeds hold the teachers' answers (soft_labels.h)
  double weight = 0.5;           ///< of the soft labels in the loss; the labels have the rest
  double temperature = 2;        ///< what the logits behind the soft labels were divided by
  double hidden = 0;             ///< weight of the distance of hidden states, besides
  double attention = 0;          ///< weight of the distance of attention maps, besides
  /// Those whose hidden states and attention are followed: they run within every step, on the
  /// model's own tokens. Means over all are taken.
  std::vector<const io::Model*> teachers = {};

  bool follows_layers() const { return hidden != 0 || attention != 0; }
};

/// The states that distillation brings into a training graph, by name.
struct DistillationStates {
  std::vector<std::string> teachers = {};  ///< never change
  std::vector<std::string> maps = {};      ///< learn, whatever else does
};

/// Fails on weights and temperatures that make no sense.
void check_distillation(const DistillationOptions& options);

/// Gives a classifier's graph, in the form that sources feed, the loss to be taught by, per
/// sequence:
///
///     (1 - weight) labels' loss + weight temperature^2 cross-entropy(soft labels, model)
///       + hidden * distance of hidden states + attention * distance of attention maps
///
/// summed over sequences and divided by their number, with soft labels also of those that have no
/// label of their own. The model's logits are divided by the temperature, whose square keeps the
/// size of gradients when it changes. The distances are those of hidden_distillation.h and
/// attention_distillation.h; what they need is added to `state`.
DistillationStates add_distillation(Graph& graph, State& state, const DistillationOptions& options);

}  // namespace lathe::train
