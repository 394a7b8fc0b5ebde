#include <algorithm>
#include <numeric>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/whole.h"

// top_k(x) {axis, k, largest}: the k largest elements along an axis, or the smallest, in their
// order, and their indices; of equal ones those in front come first.
namespace lathe::ops::top_k {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::size_t axis = axis_position("top_k", call.attributes().integer("axis"), x);
  const std::int64_t k = call.attributes().integer("k");
  if (k < 0 || (x.shape[axis].is_constant() && k > x.shape[axis].constant()))
    fail("top_k: k={} of axis {} of {}", k, axis, to_text(x));
  Type values{.dtype = x.dtype, .shape = x.shape};
  values.shape[axis] = Size(k);
  return {values, {.dtype = DType::I64, .shape = values.shape}};
}

template <typename Number>
void choose(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::size_t axis = axis_position(call.attributes.integer("axis"), x.rank());
  const AxisSplit split = split_around(x.dims(), axis);
  const std::int64_t k = call.attributes.integer("k");
  if (k > split.size) fail("top_k: k={} of an axis of size {}", k, split.size);
  const bool is_largest = call.attributes.flag("largest");
  const std::vector<Number> values = read_numbers<Number>(x);
  std::vector<Number> chosen(static_cast<std::size_t>(call.outputs[0].num_elements()));
  const std::span<std::int64_t> places = call.outputs[1].mutable_data<std::int64_t>();
  std::vector<std::int64_t> order(static_cast<std::size_t>(split.size));
  for (std::int64_t o = 0; o < split.outer; ++o) {
    for (std::int64_t n = 0; n < split.inner; ++n) {
      const auto at = [&](std::int64_t i) {
        return values[static_cast<std::size_t>((o * split.size + i) * split.inner + n)];
      };
      // NaN, which alone is not itself, is behind every number, so that the order is one.
      const auto is_before = [&](std::int64_t i, std::int64_t j) {
        const Number a = at(i), b = at(j);
        if (a != a || b != b) return a == a && b != b;
        return is_largest ? a > b : a < b;
      };
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, is_before);
      for (std::int64_t i = 0; i < k; ++i) {
        const auto target = static_cast<std::size_t>((o * k + i) * split.inner + n);
        chosen[target] = at(order[static_cast<std::size_t>(i)]);
        places[target] = order[static_cast<std::size_t>(i)];
      }
    }
  }
  write_numbers(call.outputs[0], chosen);
}

void reference(const KernelCall& call) {
  with_numbers_of(call.input(0).dtype(), [&](auto zero) { choose<decltype(zero)>(call); });
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value zeros =
      derive(graph, node, "zeros", "constant", {}, {{"values", std::vector<double>{0.0}}},
             {operand_type(graph, node, 0)});
  return {
      derive(graph, node, "gradient_x", "scatter_elements", {zeros, Value{node, 1}, gradients[0]},
             {{"axis", graph.attribute(node).integer("axis")}, {"reduction", std::string("add")}})};
}

const Register registration{Op{
    .name = "top_k",
    .summary = "the largest or smallest elements along an axis, and their indices",
    .operands = {{.name = "x"}},
    .attributes =
        {{.name = "axis", .default_value = std::int64_t{-1}, .summary = "the axis"},
         {.name = "k", .default_value = std::int64_t{1}, .summary = "how many", .required = true},
         {.name = "largest", .default_value = true, .summary = "or the smallest"}},
    .num_results = 2,
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"top_k(f32[3,4]) {k=2}", "top_k(f32[5,2]) {axis=0, k=3, largest=false}"},
}};

}  // namespace
}  // namespace lathe::ops::top_k
