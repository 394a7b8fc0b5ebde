#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::compress {

/// The elements of a tensor at these places of an axis, in this order.
Tensor take_along(const Tensor& tensor, std::size_t axis, std::span<const std::int64_t> places);

/// Makes parameters of layers smaller, together with whatever they are computed from: the state,
/// its masks, what is added to it, both sides of a product, scales and zero points of its
/// quantizer.
class ParameterSlicer {
 public:
  ParameterSlicer(Graph& graph, State& state) : graph_(graph), state_(state) {}

  /// Says that a layer reads a parameter which will be cut. Parameters may share parts with each
  /// other, as a path of low rank and the weight beside it share a mask, and with nobody else.
  void add(NodeId layer, Value parameter);

  /// Of one axis of a parameter these places stay, in rising order. Types of nodes that are no
  /// states are left to infer-types. Fails, naming what is there, where somebody else reads a part
  /// of it or where a part cannot be cut.
  void slice(Value parameter, std::size_t axis, std::span<const std::int64_t> places);

 private:
  using Places = std::vector<std::int64_t>;
  void collect(NodeId id);
  void require_own(NodeId id) const;
  void slice_state(NodeId id, std::size_t axis, std::span<const std::int64_t> places);
  void slice_operands(NodeId id, std::size_t axis, std::span<const std::int64_t> places);
  void slice_product(NodeId id, std::size_t axis, std::span<const std::int64_t> places);
  void slice_rounded(NodeId id, std::size_t axis, std::span<const std::int64_t> places);

  Graph& graph_;
  State& state_;
  std::set<NodeId> layers_, parts_;
  std::map<std::pair<NodeId, std::size_t>, Places> done_;  // by node and axis
};

}  // namespace lathe::compress
