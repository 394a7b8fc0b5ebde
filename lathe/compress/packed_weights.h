#pragma once

#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/io/model.h"

/// Packed weights: a quantized parameter as its codes instead of the floats they stand for.
namespace lathe::compress {

/// Turns every quantizer of a parameter into a `decode` of its codes and drops the floats; returns
/// how many. The graph computes the same numbers. A mask that the parameter was multiplied with
/// stays, after the codes. A parameter that something else reads as well, or that is computed in
/// another way, keeps its floats.
int pack_weights(Graph& graph, State& state);

/// Turns every `decode` back into a quantizer of floats, which can be trained; returns how many.
/// The floats are those of `masters` where it has them, else what the codes stand for.
int unpack_weights(Graph& graph, State& state, const State& masters = {});

/// The names of the parameters whose floats `pack_weights` would drop.
std::vector<std::string> packable_parameters(const Graph& graph);

/// Packs the model's weights and keeps the floats they were rounded from as its masters, where
/// those say more than the codes.
void pack_model(io::Model& model, bool keeps_masters = true);
/// Makes a packed model trainable again, from its masters where it has them.
void unpack_model(io::Model& model);

/// Replaces every quantizer of a parameter and every decode by a state that holds the rounded
/// floats, and bypasses all other quantizers and attention's rounding: a plain float model with the
/// numbers of the quantized one's weights. The state is the parameter's own, or, where somebody
/// reads that one otherwise, a new one with the quantizer's name.
void make_float(Graph& graph, State& state);

}  // namespace lathe::compress
