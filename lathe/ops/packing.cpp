#include "lathe/ops/packing.h"

#include <algorithm>

namespace lathe::ops {
namespace {

// Formats are left out: shape rules do not know them.
bool have_same_shapes(const std::vector<Type>& a, const std::vector<Type>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Type& x, const Type& y) {
    return x.dtype == y.dtype && x.shape == y.shape;
  });
}

}  // namespace

void refuse_to_pack(const Graph& graph, NodeId node, std::string_view reason) {
  fail("{} cannot be packed: {}", graph.op(node).name, reason);
}

bool is_packed(const Type& type, const PackedSequences& sequences) {
  return !type.shape.empty() && type.shape[0] == Size::symbol(sequences.tokens);
}

Type packed_type(const Graph& graph, NodeId node, const Type& type,
                 const PackedSequences& sequences) {
  const Size rows = Size::symbol(sequences.rows);
  const Size length = Size::symbol(sequences.length);
  Type result = type;
  Shape& shape = result.shape;
  if (shape.size() >= 2 && shape[0] == rows && shape[1] == length) {
    shape.erase(shape.begin());
    shape[0] = Size::symbol(sequences.tokens);
  } else if (!shape.empty() && shape[0] == rows * length) {
    shape[0] = Size::symbol(sequences.tokens);
  }
  for (Size& size : shape) {
    if (size.depends_on(sequences.length))
      refuse_to_pack(graph, node,
                     fmt::format("{} mixes tokens of different positions", to_text(type)));
    size = size.substitute(sequences.rows, Size::symbol(sequences.sequences));
  }
  return result;
}

std::int64_t packed_axis(const Graph& graph, NodeId node, const Type& operand, std::int64_t axis,
                         const PackedSequences& sequences) {
  const auto rank = static_cast<std::int64_t>(operand.rank());
  if (!is_packed(operand, sequences)) return axis;
  const std::int64_t before = axis < 0 ? axis + rank + 1 : axis;
  if (before < 2)
    refuse_to_pack(
        graph, node,
        fmt::format("axis {} is over {}", axis, before == 0 ? "sequences" : "positions"));
  return before - 1;
}

Value add_packed(Graph& graph, NodeId node, NodeSpec spec) {
  spec.name = graph.name(node) + "/packed";
  const NodeId packed = graph.insert_before(node, std::move(spec));
  // Types that were written are not inferred when the node is added; they must fit all the same.
  std::vector<Type> types = with_place(fmt::format("node \"{}\"", graph.name(packed)),
                                       [&] { return infer_types(graph, packed); });
  graph.set_types(packed, std::move(types));
  return {packed, 0};
}

Value repeat_packed(Graph& graph, NodeId node, Attributes attributes, std::vector<Type> types) {
  if (attributes == graph.attributes(node)) {
    const std::vector<Type> now = types.empty() ? infer_types(graph, node) : types;
    if (have_same_shapes(now, graph.types(node))) return {node, 0};
  }
  return add_packed(graph, node,
                    {.name = {},
                     .op = graph.op(node).name,
                     .inputs = graph.inputs(node),
                     .attributes = std::move(attributes),
                     .types = std::move(types)});
}

Value repeat_packed_along_axis(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Type& operand = graph.type(graph.input(node, 0));
  Attributes attributes = graph.attributes(node);
  if (is_packed(operand, sequences))
    attributes["axis"] =
        packed_axis(graph, node, operand, graph.attribute(node).integer("axis"), sequences);
  return repeat_packed(graph, node, std::move(attributes));
}

}  // namespace lathe::ops
