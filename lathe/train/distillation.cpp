#include "lathe/train/distillation.h"

#include <map>

#include "lathe/core/pass.h"
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
  std::map<Value, Value> copy_of;
  for (const NodeId id : source.topological_order()) {
    const std::string& name = source.name(id);
    if (source.is(id, "input")) {
      const std::optional<NodeId> same = graph.find(name);
      if (!same) {
        if (source.uses(id).empty()) continue;
        fail("the teacher reads \"{}\", which the model does not", name);
      }
      copy_of[{id, 0}] = {*same, 0};
      continue;
    }
    NodeSpec spec{.name = std::string(kPrefix) + name, .op = source.op(id).name, .inputs = {}};
    for (const Value& value : source.inputs(id))
      spec.inputs.push_back(value.is_none() ? kNone : copy_of.at(value));
    spec.attributes = source.attributes(id);
    spec.types = source.types(id);
    const NodeId copy = graph.add(std::move(spec));
    if (source.is(id, "state")) {
      check(graph.name(copy) == std::string(kPrefix) + name, "a model with one teacher");
      state.try_emplace(graph.name(copy), teacher.state.at(name));
    }
    for (std::size_t i = 0; i < source.types(id).size(); ++i)
      copy_of[{id, static_cast<std::int32_t>(i)}] = {copy, static_cast<std::int32_t>(i)};
  }
  return copy_of.at(*source.output("logits"));
}

}  // namespace

bool is_teacher_state(std::string_view name) {
  return name.starts_with(kPrefix);
}

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
    const Value constant{graph.add({.name = "distillation/" + name + "/factor",
                                    .op = "constant",
                                    .inputs = {},
                                    .attributes = {{"values", std::vector<double>{factor}}},
                                    .types = {{DType::F32, {}, {}}}}),
                         0};
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
