#include "lathe/core/graph.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/prune_row.h"

// prune_values(x) {sparsity}: of each row (the last axis) the smallest magnitudes become 0,
// round(sparsity * columns) of them, ties by index. A row is chosen by itself, so that a token's
// values do not depend on the batch or on padding.
namespace lathe::ops::prune_values {
namespace {

std::vector<Type> infer(const OpCall& call) {
  check_pruned_rows("prune_values", call, 0);
  return {{.dtype = call.input(0).dtype, .shape = call.input(0).shape}};
}

std::vector<Value> gradient(Graph& graph, NodeId id, std::span<const Value> gradients) {
  return {derive(graph, id, "gradient_x", "prune_values_gradient",
                 {gradients[0], graph.input(id, 0)}, graph.attributes(id))};
}

const Register registration{Op{
    .name = "prune_values",
    .summary = "each row with its smallest magnitudes set to 0",
    .operands = {{.name = "x"}},
    .attributes = {sparsity_attribute()},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .reference =
        [](const KernelCall& call) { run_pruned_rows(call, call.input(0), call.input(0)); },
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"prune_values(f32[T,8]) {sparsity=0.5}", "prune_values(f32[B,L,8]) {sparsity=0.1}",
                 "prune_values(f32[2,3]) {sparsity=0}"},
}};

}  // namespace
}  // namespace lathe::ops::prune_values
