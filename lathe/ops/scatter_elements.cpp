#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/indexed_elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/whole.h"

// scatter_elements(x, indices, updates) {axis, reduction}: x with updates at the places of
// gather_elements; scatter_parts(x, indices[..,n], updates) {reduction} at those of gather_parts.
// An update replaces what is there, or is added to it, multiplied with it, or taken where it is the
// larger or smaller; in the order of the updates.
namespace lathe::ops::scatter_elements {
namespace {

template <typename Number>
using Combine = Number (*)(Number, Number);

template <typename Number>
Combine<Number> find_combine(const AttributeReader& attributes) {
  const std::string& name = attributes.text("reduction");
  if (name == "none") return [](Number, Number b) { return b; };
  if (name == "add") return [](Number a, Number b) { return a + b; };
  if (name == "mul") return [](Number a, Number b) { return a * b; };
  // NaN, which alone is not itself, stays.
  if (name == "max") return [](Number a, Number b) { return a != a || a > b ? a : b; };
  if (name == "min") return [](Number a, Number b) { return a != a || a < b ? a : b; };
  throw unknown_name("reduction", name, {"add", "max", "min", "mul", "none"});
}

std::vector<Type> infer_elements(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& indices = call.input(1);
  require_integer("scatter_elements", "indices", indices);
  require_rank("scatter_elements", "indices", indices, x.rank());
  require_same_dtype("scatter", x, call.input(2));
  axis_position("scatter_elements", call.attributes().integer("axis"), x);
  find_combine<double>(call.attributes());
  if (call.input(2).shape != indices.shape)
    fail("scatter_elements: updates {} and indices {} differ in shape", to_text(call.input(2)),
         to_text(indices));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

std::vector<Type> infer_parts(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& indices = call.input(1);
  require_integer("scatter_parts", "indices", indices);
  require_rank_at_least("scatter_parts", "indices", indices, 1);
  require_same_dtype("scatter", x, call.input(2));
  find_combine<double>(call.attributes());
  const std::int64_t length = constant_size("scatter_parts", indices.axis(-1), indices);
  if (length < 1 || length > static_cast<std::int64_t>(x.rank()))
    fail("scatter_parts: indices {} do not fit {}", to_text(indices), to_text(x));
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  expected.insert(expected.end(), x.shape.begin() + length, x.shape.end());
  if (call.input(2).shape != expected)
    fail("scatter_parts: updates {} have not shape {}", to_text(call.input(2)), to_text(expected));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void scatter(const KernelCall& call, std::span<const std::int64_t> places) {
  with_numbers_of(call.outputs[0].dtype(), [&](auto zero) {
    using Number = decltype(zero);
    const Combine<Number> combine = find_combine<Number>(call.attributes);
    std::vector<Number> values = read_numbers<Number>(call.input(0));
    const std::vector<Number> updates = read_numbers<Number>(call.input(2));
    for (std::size_t i = 0; i < places.size(); ++i) {
      Number& value = values[static_cast<std::size_t>(places[i])];
      value = combine(value, updates[i]);
    }
    write_numbers(call.outputs[0], values);
  });
}

void elements_reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const Tensor& indices = call.input(1);
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (axis != axis_position(call.attributes.integer("axis"), x.rank()) &&
        indices.dim(axis) > x.dim(axis))
      fail("scatter_elements: indices {} do not fit {}", to_text(indices.dims()),
           to_text(x.dims()));
  scatter(call, elements_along(x.dims(), indices,
                               axis_position(call.attributes.integer("axis"), x.rank())));
}

void parts_reference(const KernelCall& call) {
  const IndexedParts parts = parts_of(call.input(0).dims(), call.input(1), 0);
  std::vector<std::int64_t> places;
  for (const std::int64_t begin : parts.begins)
    for (std::int64_t i = 0; i < parts.size; ++i) places.push_back(begin + i);
  scatter(call, places);
}

// Of sums alone: x and the updates are only added.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  if (graph.attribute(node).text("reduction") != "add")
    fail("node \"{}\": {} has a gradient with reduction \"add\" alone", graph.name(node),
         graph.op(node).name);
  const bool is_parts = graph.is(node, "scatter_parts");
  Attributes attributes;
  if (!is_parts) attributes["axis"] = graph.attribute(node).integer("axis");
  return {gradients[0], kNone,
          derive(graph, node, "gradient_updates", is_parts ? "gather_parts" : "gather_elements",
                 {gradients[0], graph.input(node, 1)}, std::move(attributes))};
}

const AttributeSpec kReduction{.name = "reduction",
                               .default_value = std::string("none"),
                               .summary =
                                   "how an update joins what is there: none, add, mul, max, "
                                   "min"};

const Register elements{Op{
    .name = "scatter_elements",
    .summary = "x with other elements at indices along an axis",
    .operands = {{.name = "x"}, {.name = "indices"}, {.name = "updates"}},
    .attributes = {{.name = "axis", .default_value = std::int64_t{0}, .summary = "the axis"},
                   kReduction},
    .infer = infer_elements,
    .flops = [](const OpCall& call) { return call.input(2).num_elements(); },
    .reference = elements_reference,
    .gradient = gradient,
    .examples = {"scatter_elements(f32[3,4], i64[3,2], f32[3,2]) {axis=1, reduction=\"add\"}"},
}};

const Register parts{Op{
    .name = "scatter_parts",
    .summary = "x with other parts where tuples of indices say",
    .operands = {{.name = "x"}, {.name = "indices"}, {.name = "updates"}},
    .attributes = {kReduction},
    .infer = infer_parts,
    .flops = [](const OpCall& call) { return call.input(2).num_elements(); },
    .reference = parts_reference,
    .gradient = gradient,
    .examples = {"scatter_parts(f32[3,4], i64[5,1], f32[5,4]) {reduction=\"add\"}"},
}};

}  // namespace
}  // namespace lathe::ops::scatter_elements
