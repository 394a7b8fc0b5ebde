#pragma once

#include "lathe/io/model.h"

namespace lathe::search {

/// Gives a model that was just built the weights of another one of its family, cut or grown to its
/// sizes: of each state the first rows and columns, as many as both have. What is beyond keeps the
/// values it was built with; a layer that the parent lacks gets its last one's. Returns the share
/// of the model's parameters that come from the parent; states that do whole are fresh no more.
double take_weights(io::Model& model, const io::Model& parent);

/// The states of a smaller model as the first rows and columns of a larger one's, which has a state
/// for each, and what the optimizer has of them there.
State cut_states(const State& whole, const State& smaller);
/// Writes states that were cut back to where they came from.
void return_states(State& whole, const State& smaller);

}  // namespace lathe::search
