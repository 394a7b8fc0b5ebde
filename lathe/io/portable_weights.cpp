#include "lathe/io/portable_weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "lathe/core/parameters.h"
#include "lathe/core/role.h"
#include "lathe/models/set_inputs.h"
#include "lathe/models/set_label_count.h"
#include "lathe/ops/evaluate_parameter.h"

namespace lathe::io {
namespace {

// Begins keys of a configuration that no other program knows.
constexpr std::string_view kOwnKeys = "lathe_";

// What a value is in inference: dropout is nothing there.
Value in_inference(const Graph& graph, Value value) {
  while (!value.is_none() && graph.op(value.node).is_identity_in_inference)
    value = graph.input(value.node, 0);
  return value;
}

// A node's attributes less those that training alone reads.
Attributes lasting_attributes(const Graph& graph, NodeId id) {
  Attributes attributes = graph.attributes(id);
  const std::string& dropout = graph.op(id).dropout_attribute;
  if (dropout.empty()) return attributes;
  attributes.erase(dropout);
  attributes.erase("site");
  return attributes;
}

Value operand(const Graph& graph, NodeId id, std::size_t index) {
  return index < graph.inputs(id).size() ? in_inference(graph, graph.input(id, index)) : kNone;
}

std::string described(const Graph& graph, Value value) {
  if (value.is_none()) return "none";
  return fmt::format("\"{}\" ({})", graph.name(value), graph.op(value.node).name);
}

// Walks the family's graph beside the model's and collects a value for each of its states.
class Comparison {
 public:
  Comparison(const Model& model, const Graph& own)
      : model_(model), graph_(model.graph), own_(own), parameters_(model.graph) {}

  State run() {
    for (const AttributeSpec& spec : model_.family->config) {
      const auto given = model_.config.find(spec.name);
      if (given != model_.config.end() && given->second != spec.default_value &&
          spec.name.starts_with(kOwnKeys))
        refuse(fmt::format("they do not know {}={}", spec.name, to_text(given->second)));
    }
    for (const NodeId id : own_.topological_order())
      if (!own_.is(id, "state") && !own_.op(id).is_identity_in_inference) compare(id);
    for (const Graph* one : {&own_, &graph_})
      for (const auto& [name, value] : one->outputs()) compare_output(name);
    for (const auto& [state, value] : graph_.state_updates())
      refuse(fmt::format("state \"{}\" is updated", graph_.name(state)));
    for (const NodeId id : graph_.nodes_of("state"))
      if (is_of_model(state_role(graph_, id)) && !accounted_.contains(id))
        refuse(fmt::format("it has no place for {}", described(graph_, {id, 0})));
    return std::move(weights_);
  }

 private:
  [[noreturn]] void refuse(const std::string& difference) const {
    throw UserError(
        fmt::format("other programs would run another model, the one that {} builds: {}",
                    model_.family->name, difference),
        "LoRA can be fused into the weights (lathe lora fuse), quantized weights written as plain "
        "floats (lathe export --float)");
  }

  void compare(NodeId id) {
    const std::string& name = own_.name(id);
    const std::optional<NodeId> there = graph_.find(name);
    if (!there) refuse(fmt::format("the model lacks {}", described(own_, {id, 0})));
    if (own_.op(id).name != graph_.op(*there).name ||
        lasting_attributes(own_, id) != lasting_attributes(graph_, *there))
      refuse(fmt::format("{} is another", described(graph_, {*there, 0})));
    const std::size_t count = std::max(own_.inputs(id).size(), graph_.inputs(*there).size());
    for (std::size_t i = 0; i < count; ++i) {
      const Value expected = operand(own_, id, i), value = operand(graph_, *there, i);
      if (!expected.is_none() && own_.is(expected.node, "state"))
        take(*there, expected.node, value);
      else if (!is_same(expected, value))
        refuse(fmt::format("node \"{}\" reads {} instead of {}", name, described(graph_, value),
                           described(own_, expected)));
    }
  }

  bool is_same(Value expected, Value value) const {
    if (expected.is_none() || value.is_none()) return expected.is_none() == value.is_none();
    return own_.name(expected) == graph_.name(value);
  }

  void compare_output(const std::string& name) const {
    const std::optional<Value> expected = own_.output(name), there = graph_.output(name);
    if (!expected) refuse(fmt::format("the model has the output \"{}\" too", name));
    if (!there) refuse(fmt::format("the model lacks the output \"{}\"", name));
    if (!is_same(in_inference(own_, *expected), in_inference(graph_, *there)))
      refuse(fmt::format("output \"{}\" is {}", name, described(graph_, *there)));
  }

  // The state's weight is what the reader gets in its place, so long as it comes from that state.
  void take(NodeId reader, NodeId state, Value value) {
    const std::string& name = own_.name(state);
    const std::optional<NodeId> source = graph_.find(name);
    const std::vector<NodeId> sources = parameters_.sources(value);
    const bool is_source =
        source && (value == Value{*source, 0} ||
                   std::find(sources.begin(), sources.end(), *source) != sources.end());
    if (!is_source)
      refuse(fmt::format("node \"{}\" reads {} instead of \"{}\"", graph_.name(reader),
                         described(graph_, value), name));
    const auto [taken, is_new] = taken_.emplace(name, value);
    if (taken->second != value)
      refuse(fmt::format("\"{}\" is read as {} and as {}", name, described(graph_, taken->second),
                         described(graph_, value)));
    if (!is_new) return;
    Tensor weight = ops::evaluate_parameter(graph_, model_.state, value);
    if (weight.dims() != own_.types(state)[0].dims({}) ||
        weight.dtype() != own_.types(state)[0].dtype)
      refuse(fmt::format("{} is {}", described(graph_, value), to_text(graph_.type(value))));
    weights_[name] = std::move(weight);
    account(value.node);
  }

  // Marks the states that a parameter comes from.
  void account(NodeId id) {
    std::vector<NodeId> open{id};
    while (!open.empty()) {
      const NodeId next = open.back();
      open.pop_back();
      if (!accounted_.insert(next).second) continue;
      for (const Value& value : graph_.inputs(next))
        if (!value.is_none()) open.push_back(value.node);
    }
  }

  const Model& model_;
  const Graph& graph_;
  const Graph& own_;
  const Parameters parameters_;
  std::map<std::string, Value> taken_;
  std::set<NodeId> accounted_;
  State weights_;
};

}  // namespace

Graph family_graph(const Model& model) {
  return models::build(*model.family, model.config,
                       {.task = model.task,
                        .inputs = models::input_names(model.graph),
                        .num_labels = models::label_count(model.graph).value_or(1),
                        .labels = model.labels});
}

State portable_weights(const Model& model) {
  const Graph own = family_graph(model);
  return Comparison(model, own).run();
}

}  // namespace lathe::io
