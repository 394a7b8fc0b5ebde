#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// sum_to(x): x summed over the axes that broadcasting the written shape to that of x would stretch;
// the gradient of broadcasting.
namespace lathe::ops::sum_to {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("sum_to", call, 0);
  const Type& x = call.input(0);
  const Type result{.dtype = x.dtype, .shape = declared_type("sum_to", call).shape};
  if (result.rank() > x.rank() || broadcast_shapes("sum", x, result) != x.shape)
    fail("cannot sum {} to {}", to_text(x), to_text(result.shape));
  return {result};
}

void reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  const auto target = broadcast_indices(call.outputs[0].dims(), call.input(0).dims());
  std::vector<double> sums(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) sums[static_cast<std::size_t>(target[i])] += x[i];
  write_elements(call.outputs[0], sums);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "broadcast_to", {gradients[0]}, {},
                 {operand_type(graph, node, 0)})};
}

const Register registration{Op{
    .name = "sum_to",
    .summary = "x summed to the shape written, over the axes that broadcasting stretched",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"sum_to(f32[T,4]) : f32[4]", "sum_to(f32[B,L,4]) : f32[B,1,4]",
                 "sum_to(f32[2,3]) : f32[]"},
}};

}  // namespace
}  // namespace lathe::ops::sum_to
