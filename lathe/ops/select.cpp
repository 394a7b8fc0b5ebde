#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/selected_index.h"

// select(x) {axis, index}: one index of one axis, which disappears. Negative indices count from the
// end.
namespace lathe::ops::select {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::size_t axis = axis_position("select", call.attributes().integer("axis"), x);
  const std::int64_t index = call.attributes().integer("index");
  const Size& size = x.shape[axis];
  if (size.is_constant() && (index < -size.constant() || index >= size.constant()))
    fail("select: axis {} of {} has no index {}", axis, to_text(x), index);
  Type result{.dtype = x.dtype, .shape = x.shape};
  result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return {result};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  copy_elements(call.input(0), selected_places("select", call.attributes, call.input(0), y), y);
}

// Selecting a position takes that token of each sequence. A negative index then means the end of
// the sequence, not of the padding.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Type& x = graph.type(graph.input(node, 0));
  const std::int64_t axis = graph.attribute(node).integer("axis");
  const std::int64_t index = graph.attribute(node).integer("index");
  if (is_packed(x, sequences) && axis_position(axis, x.rank() + 1) == 1)
    return add_packed(graph, node,
                      {.name = {},
                       .op = "select_in_sequence",
                       .inputs = {graph.input(node, 0), sequences.offsets},
                       .attributes = {{"index", index}}});
  return repeat_packed_along_axis(graph, node, sequences);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "select_gradient", {gradients[0]},
                 graph.attributes(node), {operand_type(graph, node, 0)})};
}

const Register registration{Op{
    .name = "select",
    .summary = "one index of one axis, which disappears",
    .operands = {{.name = "x"}},
    .attributes = select_attributes(),
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = pack,
    .examples = {"select(f32[B,L,4]) {axis=1, index=0}", "select(f32[T,4]) {axis=-1, index=-1}"},
}};

}  // namespace
}  // namespace lathe::ops::select
