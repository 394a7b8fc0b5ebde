#include "lathe/core/differentiate.h"

#include <map>
#include <set>

namespace lathe {
namespace {

// The nodes that depend on any target: only they carry gradients worth computing.
std::set<NodeId> dependents(const Graph& graph, std::span<const Value> targets) {
  std::set<NodeId> reached;
  for (const Value& target : targets) reached.insert(target.node);
  for (const NodeId id : graph.topological_order())
    for (const Value& input : graph.inputs(id))
      if (!input.is_none() && reached.contains(input.node)) reached.insert(id);
  return reached;
}

class Differentiator {
 public:
  Differentiator(Graph& graph, std::set<NodeId> dependent)
      : graph_(graph), dependent_(std::move(dependent)) {}

  void seed(Value scalar) {
    const Type& type = graph_.type(scalar);
    if (type.rank() != 0)
      fail("node \"{}\" is {}: only a scalar can be differentiated", graph_.name(scalar),
           to_text(type));
    gradients_[scalar] = {graph_.add({.name = graph_.name(scalar.node) + "/seed",
                                      .op = "constant",
                                      .inputs = {},
                                      .attributes = {{"values", std::vector<double>{1.0}}},
                                      .types = {type}}),
                          0};
  }

  // Spreads the gradients of a node's results over its operands.
  void walk_back(NodeId id) {
    std::vector<Value> of_results;
    bool any = false;
    for (std::size_t i = 0; i < graph_.types(id).size(); ++i) {
      of_results.push_back(gradient({id, static_cast<std::int32_t>(i)}));
      any = any || !of_results.back().is_none();
    }
    if (!any || graph_.op(id).is_source) return;
    const Op& op = graph_.op(id);
    if (!op.gradient) fail("node \"{}\": op {} has no gradient", graph_.name(id), op.name);
    const std::vector<Value> of_operands = op.gradient(graph_, id, of_results);
    check(of_operands.size() == graph_.inputs(id).size(), "a gradient, or none, for each operand");
    for (std::size_t i = 0; i < of_operands.size(); ++i) {
      const Value operand = graph_.input(id, i);
      if (operand.is_none() || of_operands[i].is_none() || !dependent_.contains(operand.node))
        continue;
      accumulate(operand, of_operands[i]);
    }
  }

  Value gradient(Value value) const {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? kNone : found->second;
  }

 private:
  void accumulate(Value value, Value term) {
    const auto [place, is_new] = gradients_.emplace(value, term);
    if (is_new) return;
    place->second = {graph_.add({.name = graph_.name(value.node) + "/gradient",
                                 .op = "add",
                                 .inputs = {place->second, term}}),
                     0};
  }

  Graph& graph_;
  std::set<NodeId> dependent_;
  std::map<Value, Value> gradients_;
};

}  // namespace

std::vector<Value> differentiate(Graph& graph, Value scalar, std::span<const Value> targets) {
  const std::vector<NodeId> forward = graph.topological_order();
  const std::set<NodeId> dependent = dependents(graph, targets);
  Differentiator differentiator(graph, dependent);
  differentiator.seed(scalar);
  for (auto id = forward.rbegin(); id != forward.rend(); ++id)
    if (dependent.contains(*id)) differentiator.walk_back(*id);
  std::vector<Value> result;
  for (const Value& target : targets) result.push_back(differentiator.gradient(target));
  return result;
}

}  // namespace lathe
