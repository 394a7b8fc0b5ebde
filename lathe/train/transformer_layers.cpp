#include "lathe/train/transformer_layers.h"

#include <algorithm>
#include <set>

#include "lathe/core/parameters.h"
#include "lathe/core/role.h"

namespace lathe::train {
namespace {

bool has_rows(const Type& type, const char* symbol) {
  return type.rank() == 2 && is_floating(type.dtype) && type.shape[0] == Size::symbol(symbol);
}

std::set<NodeId> ancestors(const Graph& graph, NodeId node) {
  std::set<NodeId> found;
  std::vector<NodeId> open{node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const Value& input : graph.inputs(id))
      if (!input.is_none() && found.insert(input.node).second) open.push_back(input.node);
  }
  return found;
}

class LayerFinder {
 public:
  LayerFinder(const Graph& graph, Value logits)
      : graph_(graph), needed_(ancestors(graph, logits.node)), parameters_(graph) {
    needed_.insert(logits.node);
    for (const NodeId id : graph.topological_order())
      if (needed_.contains(id)) order_.push_back(id);
  }

  TransformerLayers find() const {
    TransformerLayers result;
    for (const NodeId id : order_) {
      const std::optional<std::size_t> key = find_operand(graph_, id, OperandRole::Key);
      if (!key || !has_rows(graph_.type(graph_.input(id, *key)), "T")) continue;
      result.attentions.push_back(id);
      result.inputs.push_back(carried_past(id));
    }
    if (result.attentions.empty()) fail("has no layers of attention over tokens");
    result.chosen = chosen_rows();
    return result;
  }

 private:
  // The other operand of the first sum that the attention's result comes to: one that the attention
  // was computed from too.
  Value carried_past(NodeId attention) const {
    const std::set<NodeId> before = ancestors(graph_, attention);
    std::set<NodeId> after{attention};
    const auto comes_after = [&](Value value) {
      return !value.is_none() && after.contains(value.node);
    };
    for (const NodeId id : order_) {
      const std::vector<Value>& inputs = graph_.inputs(id);
      if (std::none_of(inputs.begin(), inputs.end(), comes_after)) continue;
      after.insert(id);
      if (!graph_.is(id, "add")) continue;
      for (const Value& other : inputs)
        if (before.contains(other.node) && !parameters_.contains(other) &&
            has_rows(graph_.type(other), "T"))
          return other;
    }
    fail("nothing is carried past its attention \"{}\"", graph_.name(attention));
  }

  // Where rows of tokens become rows of sequences.
  Value chosen_rows() const {
    std::vector<Value> found;
    for (const NodeId id : order_) {
      if (graph_.types(id).size() != 1 || !has_rows(graph_.types(id)[0], "S")) continue;
      for (const Value& input : graph_.inputs(id))
        if (!input.is_none() && has_rows(graph_.type(input), "T")) {
          found.push_back({id, 0});
          break;
        }
    }
    if (found.size() != 1) fail("{} nodes choose rows for its head: expected one", found.size());
    return found.front();
  }

  const Graph& graph_;
  std::set<NodeId> needed_;
  Parameters parameters_;
  std::vector<NodeId> order_;
};

}  // namespace

TransformerLayers find_transformer_layers(const Graph& graph, Value logits) {
  return LayerFinder(graph, logits).find();
}

std::size_t matching_layer(std::size_t index, std::size_t own, std::size_t count) {
  return (2 * index * count + own) / (2 * own);  // index * count / own, to the nearest
}

}  // namespace lathe::train
