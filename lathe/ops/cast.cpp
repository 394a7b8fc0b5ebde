#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/whole.h"

// cast(x): the elements of x in the dtype written on the node; floats round to nearest even, floats
// to integers toward zero and no further than those go, integers to narrower ones by their low
// bits.
namespace lathe::ops::cast {
namespace {

std::vector<Type> infer(const OpCall& call) {
  return {{.dtype = declared_type("cast", call).dtype, .shape = call.input(0).shape}};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  if (!is_floating(y.dtype()) && !is_floating(call.input(0).dtype())) {
    write_numbers(y, read_numbers<Whole>(call.input(0)));
    return;
  }
  const Tensor converted = call.input(0).converted(y.dtype());
  std::memcpy(y.mutable_bytes(), converted.bytes(), static_cast<std::size_t>(y.num_bytes()));
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Type type = operand_type(graph, node, 0);
  if (!is_floating(type.dtype)) return {kNone};
  return {derive(graph, node, "gradient_x", "cast", {gradients[0]}, {}, {type})};
}

const Register registration{Op{
    .name = "cast",
    .summary = "x in the dtype of the type written",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"cast(i64[B,L]) : f32[B,L]", "cast(f32[T,4]) : bf16[T,4]"},
}};

}  // namespace
}  // namespace lathe::ops::cast
