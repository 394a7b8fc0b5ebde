#pragma once

#include <optional>
#include <vector>

#include "lathe/compress/quantizers.h"

namespace lathe::compress {

/// A node between a parameter's state and its quantizer, and the operand by which it reads on.
struct ParameterLink {
  NodeId node;
  std::size_t operand = 0;
};

/// A state that one quantizer alone reads, so that changing its numbers changes nothing else. A
/// product with a mask, a lookup of rows, both in this order, or nothing stands between the two.
struct RoundedParameter {
  Quantizer quantizer;
  NodeId state;
  std::vector<ParameterLink> links;
  std::optional<NodeId> mask;
};

/// What a quantizer of a parameter rounds; nullopt where somebody else reads it or a part of it
/// too, or where the parameter is computed in another way.
std::optional<RoundedParameter> find_rounded_parameter(const Graph& graph,
                                                       const Quantizer& quantizer);

/// The operand of a product that its other operand, a mask, is multiplied with; nullopt for any
/// other node.
std::optional<std::size_t> masked_operand(const Graph& graph, NodeId node);

/// The parameter behind a weight: the float state that its masks and quantizers lead back to; no
/// node where it is computed in another way, or packed.
NodeId weight_state(const Graph& graph, Value weight);

/// What quantizers round, or the value itself.
Value before_rounding(const Graph& graph, Value value);

/// Whether one operand of one node is all that reads a node.
bool is_read_once(const Graph& graph, NodeId node);

}  // namespace lathe::compress
