#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// sum_rows(x[..,n]): the sum over all axes but the last, [n]; the gradient of a bias.
namespace lathe::ops::sum_rows {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("sum_rows", call, 0);
  const Type& x = call.input(0);
  require_rank_at_least("sum_rows", "x", x, 1);
  return {{.dtype = x.dtype, .shape = {x.axis(-1)}}};
}

void reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  std::vector<double> sums(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += x[i];
  write_elements(call.outputs[0], sums);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "broadcast_to", {gradients[0]}, {},
                 {operand_type(graph, node, 0)})};
}

const Register registration{Op{
    .name = "sum_rows",
    .summary = "the sum over all axes but the last",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"sum_rows(f32[T,4])", "sum_rows(f32[B,L,4])"},
}};

}  // namespace
}  // namespace lathe::ops::sum_rows
