#pragma once

#include <string>
#include <vector>

#include "lathe/train/loss_builder.h"
#include "lathe/train/transformer_layers.h"

namespace lathe::train {

/// How far the hidden states of a model are from a teacher's in the same graph: the mean squared
/// difference of what each layer reads, over tokens and features, and of what the head reads,
/// averaged over these and summed over sequences.
///
/// Layers of models that differ in depth are matched evenly (matching_layer). Where they differ in
/// width, the student's states pass through a linear map to the teacher's width, which learns with
/// it: its state starts in `state` unless it is there, and its name is added to `maps`.
Value hidden_state_loss(LossBuilder& loss, State& state, const TransformerLayers& student,
                        const TransformerLayers& teacher, const std::string& name,
                        std::vector<std::string>& maps);

}  // namespace lathe::train
