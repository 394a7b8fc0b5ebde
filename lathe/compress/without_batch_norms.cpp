#include "lathe/compress/without_batch_norms.h"

#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/io/portable_weights.h"
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

// The value of a norm's state that changes nothing: with this variance it divides by one.
double plain_value(OperandRole role, std::size_t operand, double eps) {
  if (role == OperandRole::Statistic) return operand == 4 ? 1 - eps : 0;
  return operand == 1 ? 1 : 0;
}

// Puts a norm of the family's graph behind the layer that it reads there.
void restore(io::Model& model, const Graph& own, NodeId norm, NodeId layer) {
  Graph& graph = model.graph;
  std::vector<Value> operands{{layer, 0}};
  for (std::size_t i = 1; i < own.inputs(norm).size(); ++i) {
    const NodeId state = own.input(norm, i).node;
    operands.push_back({graph.insert_before(layer, {.name = own.name(state),
                                                    .op = "state",
                                                    .inputs = {},
                                                    .attributes = own.attributes(state),
                                                    .types = own.types(state)}),
                        0});
    const auto value = static_cast<float>(
        plain_value(operand_role(own, norm, i), i, own.attribute(norm).real("eps")));
    const std::vector<float> values(
        static_cast<std::size_t>(own.types(state)[0].num_elements().constant()), value);
    model.state[own.name(state)] = Tensor::from<float>({std::ssize(values)}, values);
  }
  const Type type = graph.types(layer)[0];
  const std::vector<Use> readers = graph.uses(layer);
  const NodeId restored = graph.insert_after(layer, {.name = own.name(norm),
                                                     .op = "batch_norm",
                                                     .inputs = operands,
                                                     .attributes = own.attributes(norm),
                                                     .types = {type}});
  for (const Use& use : readers) {
    if (use.kind == Use::Kind::Operand)
      graph.set_input(use.user, static_cast<std::size_t>(use.operand), {restored, 0});
    else if (use.kind == Use::Kind::Output)
      graph.set_output(use.output, {restored, 0});
  }
  const bool has_own_bias = own.inputs(own.input(norm, 0).node).size() > 2 &&
                            !own.input(own.input(norm, 0).node, 2).is_none();
  if (has_own_bias || graph.inputs(layer).size() < 3 || graph.input(layer, 2).is_none()) return;
  model.state[own.name(own.input(norm, 2).node)] =
      ops::evaluate_parameter(graph, model.state, graph.input(layer, 2));
  graph.set_inputs(layer, {graph.input(layer, 0), graph.input(layer, 1)});
}

}  // namespace

int restore_batch_norms(io::Model& model) {
  const Graph own = io::family_graph(model);
  int count = 0;
  for (const NodeId norm : own.nodes_of("batch_norm")) {
    if (model.graph.find(own.name(norm))) continue;
    const std::optional<NodeId> layer = model.graph.find(own.name(own.input(norm, 0).node));
    if (!layer) continue;
    restore(model, own, norm, *layer);
    ++count;
  }
  if (count == 0) return 0;
  run_pass("remove-dead-nodes", model.graph);
  std::erase_if(model.state, [&](const auto& entry) { return !model.graph.find(entry.first); });
  verify(model.graph);
  return count;
}

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
