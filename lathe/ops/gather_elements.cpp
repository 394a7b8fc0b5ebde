#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/indexed_elements.h"
#include "lathe/ops/operand_checks.h"

// gather_elements(x, indices) {axis}: for each index the element of x at the same place, but at
// that index along the axis. gather_parts(x, indices[..,n]) {batch_axes}: for each tuple of n
// indices the part of x at these first indices, behind axes that the two share. Their gradients
// scatter into zeros.
namespace lathe::ops::gather_elements {
namespace {

std::vector<Type> infer_elements(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& indices = call.input(1);
  require_integer("gather_elements", "indices", indices);
  require_rank("gather_elements", "indices", indices, x.rank());
  const std::size_t axis = axis_position("gather_elements", call.attributes().integer("axis"), x);
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const Size rest = x.shape[i] - indices.shape[i];
    if (i != axis && rest.is_constant() && rest.constant() < 0)
      fail("gather_elements: indices {} do not fit {}", to_text(indices), to_text(x));
  }
  return {{.dtype = x.dtype, .shape = indices.shape}};
}

void elements_reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  copy_elements(x,
                elements_along(x.dims(), call.input(1),
                               axis_position(call.attributes.integer("axis"), x.rank())),
                call.outputs[0]);
}

std::vector<Type> infer_parts(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& indices = call.input(1);
  require_integer("gather_parts", "indices", indices);
  require_rank_at_least("gather_parts", "indices", indices, 1);
  const std::int64_t batch_axes = call.attributes().integer("batch_axes");
  const std::int64_t length = constant_size("gather_parts", indices.axis(-1), indices);
  if (batch_axes < 0 || batch_axes >= static_cast<std::int64_t>(indices.rank()) || length < 1 ||
      batch_axes + length > static_cast<std::int64_t>(x.rank()))
    fail("gather_parts: indices {} behind {} axes do not fit {}", to_text(indices), batch_axes,
         to_text(x));
  for (std::int64_t axis = 0; axis < batch_axes; ++axis)
    if (x.axis(axis) != indices.axis(axis))
      fail("gather_parts: {} and {} differ in axis {}", to_text(x), to_text(indices), axis);
  Type result{.dtype = x.dtype, .shape = {indices.shape.begin(), indices.shape.end() - 1}};
  result.shape.insert(result.shape.end(), x.shape.begin() + batch_axes + length, x.shape.end());
  return {result};
}

void parts_reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const IndexedParts parts = parts_of(
      x.dims(), call.input(1), static_cast<std::size_t>(call.attributes.integer("batch_axes")));
  std::vector<std::int64_t> elements;
  for (const std::int64_t begin : parts.begins)
    for (std::int64_t i = 0; i < parts.size; ++i) elements.push_back(begin + i);
  copy_elements(x, elements, call.outputs[0]);
}

Value zeros_like(Graph& graph, NodeId node, Value x) {
  return derive(graph, node, "zeros", "constant", {}, {{"values", std::vector<double>{0.0}}},
                {graph.type(x)});
}

std::vector<Value> elements_gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value x = graph.input(node, 0);
  return {
      derive(graph, node, "gradient_x", "scatter_elements",
             {zeros_like(graph, node, x), graph.input(node, 1), gradients[0]},
             {{"axis", graph.attribute(node).integer("axis")}, {"reduction", std::string("add")}}),
      kNone};
}

std::vector<Value> parts_gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  if (graph.attribute(node).integer("batch_axes") != 0)
    fail("node \"{}\": gather_parts behind shared axes has no gradient", graph.name(node));
  const Value x = graph.input(node, 0);
  return {derive(graph, node, "gradient_x", "scatter_parts",
                 {zeros_like(graph, node, x), graph.input(node, 1), gradients[0]},
                 {{"reduction", std::string("add")}}),
          kNone};
}

const Register elements{Op{
    .name = "gather_elements",
    .summary = "for each index the element of x at its place, but at that index along an axis",
    .operands = {{.name = "x"}, {.name = "indices"}},
    .attributes = {{.name = "axis", .default_value = std::int64_t{0}, .summary = "the axis"}},
    .infer = infer_elements,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = elements_reference,
    .gradient = elements_gradient,
    .examples = {"gather_elements(f32[3,4], i64[3,2]) {axis=1}",
                 "gather_elements(f32[2,4], i64[2,4])"},
}};

const Register parts{Op{
    .name = "gather_parts",
    .summary = "the parts of x that tuples of indices name",
    .operands = {{.name = "x"}, {.name = "indices"}},
    .attributes = {{.name = "batch_axes",
                    .default_value = std::int64_t{0},
                    .summary = "axes in front that x and indices share"}},
    .infer = infer_parts,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = parts_reference,
    .gradient = parts_gradient,
    .examples = {"gather_parts(f32[3,4,2], i64[5,2])", "gather_parts(f32[2,2], i64[3,1])"},
}};

}  // namespace
}  // namespace lathe::ops::gather_elements
