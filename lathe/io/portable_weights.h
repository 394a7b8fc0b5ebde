#pragma once

#include "lathe/io/model.h"

namespace lathe::io {

/// The graph that a model's family builds for its task, inputs and labels, whatever passes made of
/// the model's own.
Graph family_graph(const Model& model);

/// The weights that other programs need to run the model: they build the family's graph themselves,
/// so these are the states of that graph.
///
/// A parameter that the model's graph computes from its own state (one multiplied by a mask) is
/// given as its value. Everything else that the family's graph does not have, and a state that
/// would be left over, is refused by name: it would be lost.
State portable_weights(const Model& model);

}  // namespace lathe::io
