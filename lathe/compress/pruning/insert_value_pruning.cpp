#include "lathe/compress/pruning/insert_value_pruning.h"

#include "lathe/compress/lora.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

constexpr const char* kOp = "prune_values";

// The node that prunes a value by this share, if there is one.
Value find_pruned(const Graph& graph, Value x, double share) {
  for (const NodeId user : graph.users(x.node))
    if (graph.is(user, kOp) && graph.input(user, 0) == x &&
        graph.attribute(user).real("sparsity") == share)
      return {user, 0};
  return kNone;
}

}  // namespace

void insert_value_pruning(Graph& graph, NodeId layer, double share) {
  const std::size_t input = operand_index(graph, layer, OperandRole::Input);
  const Value before = graph.input(layer, input);
  Value x = before;
  if (graph.is(x.node, kOp)) x = graph.input(x.node, 0);
  Value pruned = find_pruned(graph, x, share);
  if (pruned.is_none())
    pruned = {graph.insert_after(x.node, {.name = graph.unique_name(graph.name(x) + "/pruned"),
                                          .op = kOp,
                                          .inputs = {x},
                                          .attributes = {{"sparsity", share}}}),
              0};
  for (const LoraPath& path : find_lora(graph)) {
    if (path.linear != layer) continue;
    const NodeId reader = path.dropout.index >= 0 ? path.dropout
                          : path.mask.index >= 0  ? path.up
                                                  : path.down;
    for (std::size_t i = 0; i < graph.inputs(reader).size(); ++i)
      if (graph.inputs(reader)[i] == before) graph.set_input(reader, i, pruned);
  }
  graph.set_input(layer, input, pruned);
  run_pass("remove-dead-nodes", graph);
}

}  // namespace lathe::compress
