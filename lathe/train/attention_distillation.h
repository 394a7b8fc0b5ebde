#pragma once

#include <string>

#include "lathe/train/loss_builder.h"
#include "lathe/train/transformer_layers.h"

namespace lathe::train {

/// How far the attention of a model is from a teacher's in the same graph: the squared distance of
/// their maps (the weight that each query gives each key), summed over the queries and keys of a
/// sequence, averaged over heads and layers, summed over sequences.
///
/// Over a sequence of n tokens this is the mean over queries of n times the squared distance of two
/// distributions over keys: of order 1 for any length where they differ by as much as they are.
///
/// Maps are never made. Attention with random signs R in place of its values gives A R, and for
/// independent signs the expectation of |(A - B) R|^2 over a column is |A - B|^2: each step draws
/// new signs (by seed, step, example and position) and measures that, over as many columns as a
/// head has features. So attention's own kernels and gradient do all the work.
///
/// Layers are matched evenly. Where the numbers of heads differ, the means over heads are compared.
/// Fails where heads differ in size.
Value attention_loss(LossBuilder& loss, const TransformerLayers& student,
                     const TransformerLayers& teacher, const std::string& name);

}  // namespace lathe::train
