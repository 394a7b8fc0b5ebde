#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/whole.h"

// cumulative_sum(x) {axis, exclusive, reverse}: each element is the sum of those before it along
// the axis and of itself, or without itself; or of those behind it.
namespace lathe::ops::cumulative_sum {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  axis_position("cumulative_sum", call.attributes().integer("axis"), x);
  return {{.dtype = x.dtype, .shape = x.shape}};
}

template <typename Number>
void add_up(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const AxisSplit split =
      split_around(x.dims(), axis_position(call.attributes.integer("axis"), x.rank()));
  const bool is_exclusive = call.attributes.flag("exclusive");
  const bool is_reverse = call.attributes.flag("reverse");
  std::vector<Number> values = read_numbers<Number>(x);
  for (std::int64_t o = 0; o < split.outer; ++o) {
    for (std::int64_t n = 0; n < split.inner; ++n) {
      Number sum{};
      for (std::int64_t i = 0; i < split.size; ++i) {
        const std::int64_t along = is_reverse ? split.size - 1 - i : i;
        Number& value =
            values[static_cast<std::size_t>((o * split.size + along) * split.inner + n)];
        const Number before = sum;
        sum = sum + value;
        value = is_exclusive ? before : sum;
      }
    }
  }
  write_numbers(call.outputs[0], values);
}

void reference(const KernelCall& call) {
  with_numbers_of(call.outputs[0].dtype(), [&](auto zero) { add_up<decltype(zero)>(call); });
}

// An element is in the sums of those behind it: their gradients are summed the other way.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  Attributes attributes = graph.attributes(node);
  attributes["reverse"] = !graph.attribute(node).flag("reverse");
  return {derive(graph, node, "gradient_x", "cumulative_sum", {gradients[0]}, attributes)};
}

const Register registration{Op{
    .name = "cumulative_sum",
    .summary = "sums along an axis of all elements up to each",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "axis", .default_value = std::int64_t{0}, .summary = "the axis"},
                   {.name = "exclusive",
                    .default_value = false,
                    .summary = "without the element itself"},
                   {.name = "reverse", .default_value = false, .summary = "from the end"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"cumulative_sum(f32[2,3]) {axis=1}",
                 "cumulative_sum(f32[T,4]) {exclusive=true, reverse=true}"},
}};

}  // namespace
}  // namespace lathe::ops::cumulative_sum
