#include <algorithm>
#include <limits>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/whole.h"

// sum, mean and max over some axes, or all of them. With `keep` those axes stay with size 1, so
// that the result broadcasts against x. Mean over two spatial axes is global average pooling.
namespace lathe::ops::reductions {
namespace {

struct Reduction {
  std::string name;
  std::string summary;
  double (*join)(double, double);
  Whole (*join_integers)(Whole, Whole);  ///< null: floats alone
  bool divides = false;
};

template <typename Number>
Number larger(Number a, Number b) {
  return a != a || a > b ? a : b;  // NaN stays
}
template <typename Number>
Number sum(Number a, Number b) {
  return a + b;
}

std::vector<Reduction> reductions() {
  return {
      {"max", "the largest element", larger, larger},
      {"mean", "the mean", sum, nullptr, true},
      {"sum", "the sum", sum, sum},
  };
}

std::vector<Type> infer(const Reduction& reduction, const OpCall& call) {
  if (reduction.join_integers == nullptr) require_floating(reduction.name, call, 0);
  const Type& x = call.input(0);
  for (const std::int64_t axis : call.attributes().integers("axes"))
    axis_position(reduction.name, axis, x);
  const std::vector<bool> is_reduced = reduced_axes(call.attributes().integers("axes"), x.rank());
  Type result{.dtype = x.dtype, .shape = {}};
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!is_reduced[axis])
      result.shape.push_back(x.shape[axis]);
    else if (call.attributes().flag("keep"))
      result.shape.push_back(1);
  }
  return {result};
}

// What is left of no elements: 0, and of the largest the least there is.
double start_of(const Reduction& reduction, double, DType) {
  return reduction.name == "max" ? -std::numeric_limits<double>::infinity() : 0.0;
}
Whole start_of(const Reduction& reduction, Whole, DType dtype) {
  if (reduction.name != "max" || dtype == DType::U8 || dtype == DType::Bool) return {0};
  return {std::numeric_limits<std::int64_t>::min() >> (64 - 8 * size_of(dtype))};
}

template <typename Number>
void reduce(const Reduction& reduction, Number (*join)(Number, Number), const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::vector<bool> is_reduced = reduced_axes(call.attributes.integers("axes"), x.rank());
  std::vector<std::int64_t> kept = x.dims();
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < kept.size(); ++axis) {
    if (!is_reduced[axis]) continue;
    count *= kept[axis];
    kept[axis] = 1;
  }
  const std::vector<Number> values = read_numbers<Number>(x);
  const std::vector<std::int64_t> target = broadcast_indices(kept, x.dims());
  std::vector<Number> y(static_cast<std::size_t>(call.outputs[0].num_elements()),
                        start_of(reduction, Number{}, x.dtype()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number& total = y[static_cast<std::size_t>(target[i])];
    total = join(total, values[i]);
  }
  if constexpr (std::is_same_v<Number, double>)
    if (reduction.divides)
      for (double& total : y) total /= static_cast<double>(count);
  write_numbers(call.outputs[0], y);
}

void reference(const Reduction& reduction, const KernelCall& call) {
  if (is_floating(call.outputs[0].dtype()))
    reduce(reduction, reduction.join, call);
  else
    reduce(reduction, reduction.join_integers, call);
}

// With dy in a shape that broadcasts against x: a sum hands it to every element, a mean its share,
// a maximum to whom it came from.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Type x = operand_type(graph, node, 0);
  const std::vector<bool> is_reduced =
      reduced_axes(graph.attribute(node).integers("axes"), x.rank());
  Type kept = x;
  for (std::size_t axis = 0; axis < kept.rank(); ++axis)
    if (is_reduced[axis]) kept.shape[axis] = Size(1);
  Value dy = gradients[0];
  if (graph.type(dy).shape != kept.shape)
    dy = derive(graph, node, "gradient_kept", "reshape", {dy}, {}, {kept});
  if (graph.is(node, "mean"))
    return {derive(graph, node, "gradient_x", "mean_gradient", {dy}, {}, {x})};
  if (graph.is(node, "max"))
    return {derive(graph, node, "gradient_x", "max_gradient", {dy, graph.input(node, 0)})};
  return {derive(graph, node, "gradient_x", "broadcast_to", {dy}, {}, {x})};
}

// Over the axes inside tokens only: reducing rows or positions would count padding before and not
// after.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Type& x = graph.type(graph.input(node, 0));
  if (!is_packed(x, sequences)) return repeat_packed(graph, node, graph.attributes(node));
  Attributes attributes = graph.attributes(node);
  std::vector<std::int64_t> axes = graph.attribute(node).integers("axes");
  if (axes.empty()) refuse_to_pack(graph, node, "it reduces all axes, positions among them");
  for (std::int64_t& axis : axes) axis = packed_axis(graph, node, x, axis, sequences);
  attributes["axes"] = axes;
  return repeat_packed(graph, node, std::move(attributes));
}

Op reduction_op(const Reduction& reduction) {
  return {
      .name = reduction.name,
      .summary = reduction.summary + " over some axes",
      .operands = {{.name = "x"}},
      .attributes = {{.name = "axes",
                      .default_value = std::vector<std::int64_t>{},
                      .summary = "the axes to reduce; none: all of them"},
                     {.name = "keep",
                      .default_value = false,
                      .summary = "whether reduced axes stay with size 1"}},
      .infer = [reduction](const OpCall& call) { return infer(reduction, call); },
      .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
      .reference = [reduction](const KernelCall& call) { reference(reduction, call); },
      .gradient = gradient,
      .pack = pack,
      .examples = {reduction.name + "(f32[T,4]) {axes=[-1]}",
                   reduction.name + "(f32[2,3,4,5]) {axes=[2,3], keep=true}",
                   reduction.name + "(f32[B,L])"},
  };
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const Reduction& reduction : reductions()) result.emplace_back(reduction_op(reduction));
  return result;
}();

}  // namespace
}  // namespace lathe::ops::reductions
