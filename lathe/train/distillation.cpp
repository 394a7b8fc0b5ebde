#include "lathe/train/distillation.h"

#include "lathe/core/copy_nodes.h"
#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/core/scalar_constant.h"
#include "lathe/core/select_outputs.h"

namespace lathe::train {
namespace {

constexpr std::string_view kPrefix = "teacher.";

// Copies the teacher's nodes; inputs are the student's own.
Value copy_teacher(Graph& graph, State& state, const io::Model& teacher) {
  Graph source = select_outputs(teacher.graph, {"logits"});
  run_pass("pack-sequences", source);
  run_pass("remove-dropout", source);
  run_pass("select-rows-early", source);
  run_pass("remove-dead-nodes", source);
  NodeCopier copier(source, graph);
  for (const NodeId id : source.topological_order()) {
    const std::string& name = source.name(id);
    if (source.is(id, "input")) {
      const std::optional<NodeId> same = graph.find(name);
      if (same) copier.map({id, 0}, {*same, 0});
      if (!same && !source.uses(id).empty())
        fail("the teacher reads \"{}\", which the model does not", name);
      continue;
    }
    const NodeId copy = copier.copy(id, std::string(kPrefix) + name);
    if (!source.is(id, "state")) continue;
    check(graph.name(copy) == std::string(kPrefix) + name, "a model with one teacher");
    // What the teacher knows does not change.
    if (state_role(source, id) == StateRole::Parameter)
      graph.set_attribute(copy, "role", std::string(lathe::name(StateRole::Buffer)));
    state.try_emplace(graph.name(copy), teacher.state.at(name));
  }
  return copier.at(*source.output("logits"));
}

}  // namespace

Value add_distillation(Graph& graph, State& state, Value loss_sum,
                       const DistillationOptions& options) {
  if (!(options.weight >= 0 && options.weight <= 1))
    fail("a teacher's weight of {}: expected 0 to 1", options.weight);
  if (!(options.temperature > 0))
    fail("a temperature of {}: expected a number above 0", options.temperature);
  const std::optional<Value> logits = graph.output("logits");
  if (!logits) fail("a model without logits cannot learn from a teacher's");
  const Value taught = copy_teacher(graph, state, *options.teacher);
  if (graph.type(taught) != graph.type(*logits))
    fail("the teacher gives logits {}, the model {}", to_text(graph.type(taught)),
         to_text(graph.type(*logits)));
  const auto add = [&](const std::string& name, const std::string& op, std::vector<Value> inputs,
                       Attributes attributes = {}) {
    return Value{graph.add({.name = "distillation/" + name,
                            .op = op,
                            .inputs = std::move(inputs),
                            .attributes = std::move(attributes)}),
                 0};
  };
  const auto times = [&](const std::string& name, Value x, double factor) {
    const Value constant = add_scalar_constant(graph, "distillation/" + name + "/factor", factor);
    return add(name, "mul", {x, constant});
  };
  const Attributes last_axis{{"axis", std::int64_t{-1}}};
  const Value expected =
      add("expected", "softmax", {times("softened", taught, 1 / options.temperature)}, last_axis);
  const Value given = add("given", "log_softmax",
                          {times("softened_student", *logits, 1 / options.temperature)}, last_axis);
  const Value agreement = add("sum", "sum", {add("agreement", "mul", {expected, given})});
  const double scale = options.weight * options.temperature * options.temperature;
  return add("loss", "add",
             {times("labels", loss_sum, 1 - options.weight), times("teacher", agreement, -scale)});
}

}  // namespace lathe::train
