#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"

/// The calls in the op records' `examples`, made runnable for documentation and for the tests that
/// walk over all ops: shapes, gradients, backends.
namespace lathe::ops {

/// One call as a graph: an input for each operand, and the node that reads them.
struct Example {
  Graph graph;
  NodeId node;
  std::vector<NodeId> inputs;  ///< of the operands that are there, in order
};

/// Reads a call such as `linear(f32[T,8], f32[16,8], none) {..} : f32[T,16]`; the attributes and
/// the result types may be left out. Inputs are named after the op's operands, the node `y`, and
/// its results are outputs of the graph.
Example parse_example(std::string_view text);

/// What symbols mean in examples: B=2, L=3, T=5, S=2.
SymbolValues example_symbols();

/// From which numbers inputs are drawn. Ops such as log are only smooth over positive ones.
struct ValueRange {
  double low = -1.0;
  double high = 1.0;
};

/// A tensor for each input of the example, the same for the same seed. Integers are 0 or 1, which
/// is valid as an id, a label and a mask; a vector of S+1 integers holds the offsets 0, 2, 5, and
/// i32[3] a seed and a step, 1, 0, 2.
std::vector<Tensor> random_inputs(const Example& example, std::uint64_t seed,
                                  ValueRange range = {});

/// The results of the example's node by its reference kernel.
std::vector<Tensor> evaluate(const Example& example, const std::vector<Tensor>& inputs);
/// The same for a call given as text.
std::vector<Tensor> evaluate(std::string_view text, const std::vector<Tensor>& inputs);

}  // namespace lathe::ops
