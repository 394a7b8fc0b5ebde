#pragma once

#include <string>
#include <vector>

#include "lathe/compress/quantization_rules.h"
#include "lathe/core/graph.h"

namespace lathe::compress {

/// What `insert_quantizers` did.
struct Insertion {
  int quantizers = 0;               ///< attentions with rounded weights among them
  std::vector<std::string> unused;  ///< places of the rules that matched no layer
};

/// Puts a quantizer in front of every tensor that a rule gives a format to.
///
/// Layers are the nodes that multiply with a parameter: linears, convolutions, products. Inputs and
/// outputs are those of layers, and of any op that a rule names by its type or its whole name;
/// there, weights are what it multiplies with, parameter or not. A value that several layers read
/// in the same format is rounded once. A masked weight is rounded after its mask, or before it
/// where the format has no zero. Rows of a weight, for formats with a scale or blocks a row, are
/// the layer's outputs. Rows looked up in a table are rounded after the lookup where that gives the
/// same numbers. Scales that a format needs are added as states `<tensor>.scale` (and `.zero`) and
/// given the values 1 and 0: ranges are somebody else's to choose. A result that has a format of
/// its own is rounded a second time for a reader that wants another. Weights of attention get
/// theirs as the node's `weight_format`. Fails when a tensor had a quantizer before.
Insertion insert_quantizers(Graph& graph, State& state, const std::vector<QuantizationRule>& rules);

}  // namespace lathe::compress
