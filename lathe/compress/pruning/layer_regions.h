#pragma once

#include <vector>

#include "lathe/compress/pruning/granules.h"

/// Regions of a layer's parameters, cut by its outputs or by its inputs.
namespace lathe::compress {

/// Whether a layer's weight and bias are parameters (masked, rounded) that it alone reads, so that
/// taking its features away takes nothing from others.
bool has_own_parameters(const Graph& graph, NodeId layer);

/// Runs of `tile` outputs each, from output `first` on, `count` in all: rows of the weight,
/// elements of the bias.
std::vector<GranulePart> output_parts(const Graph& graph, NodeId layer, std::int64_t first,
                                      std::int64_t count, std::int64_t tile);
/// Runs of `tile` inputs each: columns of the weight.
GranulePart input_part(const Graph& graph, NodeId layer, std::int64_t tile);

}  // namespace lathe::compress
