#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/packing.h"

// split(x) {axis, sizes}: consecutive parts of one axis, a result for each size; the opposite of
// concat.
namespace lathe::ops::split {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::size_t axis = axis_position("split", call.attributes().integer("axis"), x);
  const std::vector<std::int64_t>& sizes = call.attributes().integers("sizes");
  if (sizes.empty()) fail("split needs one size or more");
  Size sum;
  std::vector<Type> results;
  for (const std::int64_t size : sizes) {
    if (size < 0) fail("split: size {} is negative", size);
    sum += Size(size);
    results.push_back({.dtype = x.dtype, .shape = x.shape});
    results.back().shape[axis] = Size(size);
  }
  if (sum != x.shape[axis])
    fail("split: sizes {} add up to {}, but axis {} of {} is {}", to_text(Attribute(sizes)),
         sum.text(), axis, to_text(x), x.shape[axis].text());
  return results;
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::size_t axis = axis_position(call.attributes.integer("axis"), x.rank());
  const std::vector<std::int64_t> strides = row_major_strides(x.dims());
  std::int64_t begin = 0;
  for (Tensor& y : call.outputs) {
    copy_elements(x, strided_indices(y.dims(), strides, begin * strides[axis]), y);
    begin += y.dim(axis);
  }
}

// Parts that the loss does not depend on have a gradient of zeros.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  std::vector<Value> parts(gradients.begin(), gradients.end());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].is_none())
      parts[i] = derive(graph, node, "gradient_none", "full_like",
                        {Value{node, static_cast<std::int32_t>(i)}}, {{"value", 0.0}});
  return {derive(graph, node, "gradient_x", "concat", std::move(parts),
                 {{"axis", graph.attribute(node).integer("axis")}})};
}

const Register registration{Op{
    .name = "split",
    .summary = "consecutive parts of one axis, a result for each",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "axis", .default_value = 0, .summary = "the axis", .required = true},
                   {.name = "sizes",
                    .default_value = std::vector<std::int64_t>{},
                    .summary = "the size of each part",
                    .required = true}},
    .num_results = -1,
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = repeat_packed_along_axis,
    .examples = {"split(f32[T,6]) {axis=-1, sizes=[2,2,2]}",
                 "split(f32[B,L,5]) {axis=2, sizes=[1,4]}"},
}};

}  // namespace
}  // namespace lathe::ops::split
