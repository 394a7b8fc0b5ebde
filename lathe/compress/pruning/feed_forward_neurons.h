#pragma once

#include "lathe/compress/pruning/granules.h"

namespace lathe::compress {

/// A unit for each feed-forward part: layers whose outputs other layers read, through nothing but
/// functions of single elements. A granule is a neuron: an output of the first layers (two where
/// the part is gated) with its bias, and an input of those that read it.
std::vector<PruningUnit> find_neuron_units(const Graph& graph);

}  // namespace lathe::compress
