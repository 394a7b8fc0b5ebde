#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/slice_range.h"

// slice(x) {axis, begin, end}: the indices begin to end - 1 of one axis. Negative ones count from
// the end of the axis; without `end` the slice goes to the end.
namespace lathe::ops::slice {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::size_t axis = axis_position("slice", call.attributes().integer("axis"), x);
  const Size& size = x.shape[axis];
  const auto [begin, end] = slice_range(call.attributes(), size);
  // A size with symbols is not known to be large enough before it has a value.
  const auto is_negative = [](const Size& s) { return s.is_constant() && s.constant() < 0; };
  if (is_negative(begin) || is_negative(end - begin) || is_negative(size - end))
    fail("slice from {} to {} is outside axis {} of {}", begin.text(), end.text(), axis,
         to_text(x));
  Type result{.dtype = x.dtype, .shape = x.shape};
  result.shape[axis] = end - begin;
  return {result};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  copy_elements(call.input(0), slice_places("slice", call.attributes, call.input(0), y), y);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "slice_gradient", {gradients[0]},
                 graph.attributes(node), {operand_type(graph, node, 0)})};
}

const Register registration{Op{
    .name = "slice",
    .summary = "a run of indices of one axis",
    .operands = {{.name = "x"}},
    .attributes = slice_attributes(),
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = repeat_packed_along_axis,
    .examples = {"slice(f32[T,8]) {axis=1, begin=2, end=6}", "slice(f32[B,L,4]) {axis=1, begin=1}",
                 "slice(f32[B,L,4]) {axis=1, begin=-2, end=-1}"},
}};

}  // namespace
}  // namespace lathe::ops::slice
