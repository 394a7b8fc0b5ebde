#include "lathe/compress/without_batch_norms.h"

#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/evaluate_parameter.h"

namespace lathe::compress {
namespace {

// Scales the parameter that a weight is, or is with a mask, and lets the layer read it as before:
// zeros stay zeros.
void keep_weight(Graph& graph, State& state, NodeId layer) {
  const Value folded = graph.input(layer, 1);
  const std::vector<Value> operands = graph.inputs(folded.node);
  Value parameter = operands[0];
  if (graph.is(parameter.node, "mul"))
    for (const Value& factor : graph.inputs(operands[0].node))
      if (state_role(graph, factor.node) != StateRole::Mask) parameter = factor;
  graph.set_input(folded.node, 0, parameter);
  Tensor value = ops::evaluate_parameter(graph, state, folded);
  graph.set_input(folded.node, 0, operands[0]);
  graph.set_input(layer, 1, operands[0]);
  state[graph.name(parameter.node)] = std::move(value);
}

// Gives the layer a bias of its own.
void keep_bias(Graph& graph, State& state, NodeId layer) {
  const Value folded = graph.input(layer, 2);
  const Value old = graph.input(folded.node, 4);
  Tensor value = ops::evaluate_parameter(graph, state, folded);
  if (!old.is_none() && graph.is(old.node, "state") && graph.uses(old.node).size() == 1) {
    graph.set_input(layer, 2, old);
    state[graph.name(old.node)] = std::move(value);
    return;
  }
  const std::string name = graph.name(layer) + ".bias";
  const NodeId bias = graph.insert_before(layer, {.name = name,
                                                  .op = "state",
                                                  .inputs = {},
                                                  .attributes = {{"init", std::string("zeros")}},
                                                  .types = {graph.type(folded)}});
  graph.set_input(layer, 2, {bias, 0});
  state[name] = std::move(value);
}

// A state that several layers read cannot be scaled for one of them.
bool is_of_one(const Graph& graph, Value weight) {
  if (graph.uses(weight.node).size() != 1) return false;
  if (graph.is(weight.node, "state")) return true;
  for (const Value& factor : graph.inputs(weight.node))
    if (graph.uses(factor.node).size() != 1) return false;
  return true;
}

}  // namespace

int fold_batch_norms(Graph& graph, State& state) {
  Graph folded = graph;
  if (run_pass("fold-batch-norm", folded) == 0) return 0;
  for (const NodeId id : folded.nodes_of("folded_weight"))
    if (!is_of_one(folded, folded.input(id, 0))) return 0;
  int count = 0;
  for (const NodeId id : folded.topological_order()) {
    if (!folded.is(id, "conv2d") && !folded.is(id, "linear")) continue;
    if (!folded.is(folded.input(id, 1).node, "folded_weight")) continue;
    // The bias first: its nodes read the norm's states, which the weight does not change.
    keep_bias(folded, state, id);
    keep_weight(folded, state, id);
    ++count;
  }
  run_pass("remove-dead-nodes", folded);
  for (auto entry = state.begin(); entry != state.end();)
    entry = graph.find(entry->first) && !folded.find(entry->first) ? state.erase(entry)
                                                                   : std::next(entry);
  verify(folded);
  graph = std::move(folded);
  return count;
}

}  // namespace lathe::compress
