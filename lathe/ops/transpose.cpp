#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/packing.h"

// transpose(x) {axes}: axis i of the result is axis axes[i] of x.
namespace lathe::ops::transpose {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::vector<std::int64_t>& axes = call.attributes().integers("axes");
  Type result{.dtype = x.dtype, .shape = {}};
  std::vector<bool> is_used(x.rank(), false);
  for (const std::int64_t axis : axes) {
    const std::size_t position = axis_position("transpose", axis, x);
    if (is_used[position]) fail("transpose: axis {} of {} is used twice", axis, to_text(x));
    is_used[position] = true;
    result.shape.push_back(x.shape[position]);
  }
  if (axes.size() != x.rank())
    fail("transpose of {} needs {} axes, not {}", to_text(x), x.rank(), axes.size());
  return {result};
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::vector<std::int64_t> own = row_major_strides(x.dims());
  std::vector<std::int64_t> strides;
  for (const std::int64_t axis : call.attributes.integers("axes"))
    strides.push_back(own[axis_position(axis, x.rank())]);
  copy_elements(x, strided_indices(call.outputs[0].dims(), strides), call.outputs[0]);
}

// Rows and positions must stay in front in their order: they become the one axis of tokens.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Type& x = graph.type(graph.input(node, 0));
  if (!is_packed(x, sequences)) return repeat_packed(graph, node, graph.attributes(node));
  const std::vector<std::int64_t>& axes = graph.attribute(node).integers("axes");
  const std::size_t padded_rank = x.rank() + 1;
  std::vector<std::int64_t> packed_axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_position(axes[i], padded_rank);
    if ((i < 2 || axis < 2) && axis != i)
      refuse_to_pack(graph, node, "it moves the axes of rows or positions");
    if (i > 0) packed_axes.push_back(static_cast<std::int64_t>(axis) - 1);
  }
  return repeat_packed(graph, node, {{"axes", packed_axes}});
}

// Back to where each axis came from.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const std::vector<std::int64_t>& axes = graph.attribute(node).integers("axes");
  std::vector<std::int64_t> inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    inverse[axis_position(axes[i], axes.size())] = static_cast<std::int64_t>(i);
  return {derive(graph, node, "gradient_x", "transpose", {gradients[0]}, {{"axes", inverse}})};
}

const Register registration{Op{
    .name = "transpose",
    .summary = "x with its axes in another order",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "axes",
                    .default_value = std::vector<std::int64_t>{},
                    .summary = "the axis of x that each axis of the result is",
                    .required = true}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = pack,
    .examples = {"transpose(f32[B,L,2,4]) {axes=[0,2,1,3]}", "transpose(f32[3,4]) {axes=[-1,0]}"},
}};

}  // namespace
}  // namespace lathe::ops::transpose
