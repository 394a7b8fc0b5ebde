#include "lathe/core/pass.h"
#include "lathe/ops/passes/written_out.h"

// linear(x, w) + b is linear(x, w, b) where b has a number for each output and nobody else reads
// the product.
namespace lathe::ops {
namespace {

int join_biases(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    if (!graph.is(id, "add")) continue;
    for (const std::size_t i : {0, 1}) {
      const Value product = graph.input(id, i);
      const Value bias = graph.input(id, 1 - i);
      if (!graph.is(product.node, "linear") || graph.uses(product.node).size() != 1) continue;
      if (graph.inputs(product.node).size() > 2 && !graph.input(product.node, 2).is_none())
        continue;
      if (graph.type(bias).shape != Shape{graph.type(product).axis(-1)}) continue;
      if (!graph.is(bias.node, "state")) continue;
      const NodeId joined = graph.insert_before(
          id, {.name = graph.name(product.node) + "/joined",
               .op = "linear",
               .inputs = {graph.input(product.node, 0), graph.input(product.node, 1), bias}});
      const std::string name = graph.name(product.node);
      graph.replace_all_uses({id, 0}, {joined, 0});
      graph.erase(id);
      graph.erase(product.node);
      graph.rename(joined, name);
      ++changed;
      break;
    }
  }
  return changed;
}

const Register join_biases_pass{Pass{
    .name = "join-biases",
    .summary = "make an addition behind a linear layer its bias",
    .run = join_biases,
}};

}  // namespace
}  // namespace lathe::ops
