#include "lathe/core/pass.h"

// A reshape of a reshape reads the first operand directly, and one to the shape that its operand
// has is its operand. A linear layer between two reshapes that make one axis of rows and positions
// and take it apart again needs neither: it treats every row alone.
namespace lathe::ops {
namespace {

// linear(reshape(x)) is reshape(linear(x)) where the last axis stays.
bool lift_above_linear(Graph& graph, NodeId id) {
  if (!graph.is(id, "linear")) return false;
  const Value flat = graph.input(id, 0);
  if (!graph.is(flat.node, "reshape")) return false;
  const Value x = graph.input(flat.node, 0);
  if (graph.type(x).rank() <= graph.type(flat).rank() ||
      graph.type(x).axis(-1) != graph.type(flat).axis(-1))
    return false;
  std::vector<Value> inputs = graph.inputs(id);
  inputs[0] = x;
  const Type type = graph.types(id)[0];
  const std::string name = graph.name(id);
  const NodeId lifted = graph.insert_before(
      id, {.name = name + "/lifted", .op = "linear", .inputs = std::move(inputs)});
  const NodeId shaped = graph.insert_before(
      id, {.name = name + "/flat", .op = "reshape", .inputs = {{lifted, 0}}, .types = {type}});
  graph.replace_all_uses({id, 0}, {shaped, 0});
  graph.erase(id);
  graph.rename(lifted, name);
  return true;
}

int merge_reshapes(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    if (lift_above_linear(graph, id)) {
      ++changed;
      continue;
    }
    if (!graph.is(id, "reshape")) continue;
    Value x = graph.input(id, 0);
    if (graph.is(x.node, "reshape")) {
      x = graph.input(x.node, 0);
      graph.set_input(id, 0, x);
      ++changed;
    }
    if (graph.type(x).shape != graph.types(id)[0].shape) continue;
    graph.replace_all_uses({id, 0}, x);
    ++changed;
  }
  if (changed > 0) run_pass("remove-dead-nodes", graph);
  return changed;
}

const Register merge_reshapes_pass{Pass{
    .name = "merge-reshapes",
    .summary = "make a chain of reshapes one, and drop those that change nothing",
    .run = merge_reshapes,
    .is_idempotent = false,
}};

}  // namespace
}  // namespace lathe::ops
