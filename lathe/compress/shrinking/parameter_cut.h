#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// The elements of a tensor at these places of an axis, in this order.
Tensor take_along(const Tensor& tensor, std::size_t axis, std::span<const std::int64_t> places);

/// Places of one axis of a parameter that stay, in rising order.
struct ParameterCut {
  NodeId reader;  ///< a layer or a lookup
  Value parameter;
  std::size_t axis = 0;
  std::vector<std::int64_t> places;
};

/// Makes parameters smaller, each with whatever it is computed from (the state, its masks, what is
/// added to it, both sides of a product, scales and zero points of its quantizer), and infers the
/// types of the graph anew. A parameter may be cut along two axes. Parameters may share parts with
/// each other, as a path of low rank and the weight beside it share a mask, and with nobody else.
///
/// Fails with the reason, leaving graph and state half changed, where somebody else reads a part, a
/// part cannot be cut, or what stays would be rounded to other numbers than before.
void cut_parameters(Graph& graph, State& state, std::span<const ParameterCut> cuts);

}  // namespace lathe::compress
