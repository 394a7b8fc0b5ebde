#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"

/// How gradient rules add nodes to a graph: each is named after the node it differentiates.
namespace lathe::ops {

/// Adds a node `<origin>/<role>` and returns its first result.
Value derive(Graph& graph, NodeId origin, std::string_view role, std::string op,
             std::vector<Value> inputs, Attributes attributes = {}, std::vector<Type> types = {});
/// The type of operand `index` without its number format: gradients are stored in full.
Type operand_type(const Graph& graph, NodeId node, std::size_t index);
/// `gradient` summed over the axes along which operand `index` of `origin` was broadcast; itself
/// where it was not.
Value sum_to_operand(Graph& graph, NodeId origin, std::size_t index, Value gradient);
/// "gradient_x": the role of the gradient with respect to operand `index`.
std::string gradient_role(const Graph& graph, NodeId node, std::size_t index);
/// A gradient of none for each operand.
std::vector<Value> no_gradients(const Graph& graph, NodeId node);

}  // namespace lathe::ops
