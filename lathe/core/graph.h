#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/core/annotation.h"
#include "lathe/core/op.h"
#include "lathe/core/type.h"

namespace lathe {

/// A node of one graph. Stays valid while other nodes come and go, and is never reused.
struct NodeId {
  std::int32_t index = -1;
  auto operator<=>(const NodeId&) const = default;
};

/// One result of a node, or nothing: the place of an optional operand that is absent.
struct Value {
  NodeId node;
  std::int32_t index = 0;
  auto operator<=>(const Value&) const = default;
  bool is_none() const { return node.index < 0; }
};
inline constexpr Value kNone{};

/// A node as its author writes it.
struct NodeSpec {
  std::string name;  ///< made unique if taken
  std::string op;
  std::vector<Value> inputs;
  Attributes attributes = {};
  std::vector<Type> types = {};  ///< empty: the op's shape rule decides
};

/// Where a value is read.
struct Use {
  enum class Kind { Operand, Output, StateUpdate };
  Kind kind = Kind::Operand;
  NodeId user;  ///< the reading node; for a state update, the state
  std::int32_t operand = 0;
  std::string output;  ///< the output's name
};

/// A model: typed nodes, named outputs, and the updates of its states.
///
/// A value: copying it copies everything, and nothing in the copy refers to the original. It holds
/// no large tensors; those live in a `State`. Nodes are pure; parameters and other memory are nodes
/// of op `state`, read before the step, and written after it by `bind_state`.
class Graph {
 public:
  // Symbols.
  void declare_symbol(const std::string& name) { symbols_.insert(name); }
  const std::set<std::string>& symbols() const { return symbols_; }
  void forget_symbol(const std::string& name) { symbols_.erase(name); }

  // Building. Fails on operands, attributes or types that do not fit the op.
  NodeId add(NodeSpec spec);
  NodeId insert_before(NodeId place, NodeSpec spec);
  NodeId insert_after(NodeId place, NodeSpec spec);
  /// `base` if it is free, else `base_2`, `base_3`, ...
  std::string unique_name(std::string_view base) const;

  // Reading.
  std::size_t num_nodes() const { return order_.size(); }
  bool has(NodeId id) const;
  const std::string& name(NodeId id) const { return at(id).name; }
  const Op& op(NodeId id) const { return *at(id).op; }
  bool is(NodeId id, std::string_view op_name) const { return at(id).op->name == op_name; }
  const std::vector<Value>& inputs(NodeId id) const { return at(id).inputs; }
  Value input(NodeId id, std::size_t index) const;
  const Attributes& attributes(NodeId id) const { return at(id).attributes; }
  /// Attributes with the op's defaults.
  AttributeReader attribute(NodeId id) const;
  const std::vector<Type>& types(NodeId id) const { return at(id).types; }
  const Type& type(Value value) const;
  /// "h", or "h#1" for a later result.
  std::string name(Value value) const;
  /// The node of that name; nullopt when there is none.
  std::optional<NodeId> find(std::string_view name) const;
  /// The node of that name; fails with the nearest name.
  NodeId at(std::string_view name) const;
  /// What the op's rules see of the node.
  OpCall call(NodeId id) const;
  /// In the order they were written, or moved as little as possible so that operands come first.
  std::vector<NodeId> topological_order() const;
  /// Writes the nodes down in that order, which it then takes no time to find.
  void sort() { order_ = topological_order(); }
  /// Every node of an op, in topological order.
  std::vector<NodeId> nodes_of(std::string_view op_name) const;
  const std::vector<Use>& uses(NodeId id) const { return at(id).uses; }
  /// The distinct nodes that read any result of `id`.
  std::vector<NodeId> users(NodeId id) const;
  bool has_uses(Value value) const;

  // Outputs and state updates.
  void set_output(const std::string& name, Value value);
  void remove_output(std::string_view name);
  const std::vector<std::pair<std::string, Value>>& outputs() const { return outputs_; }
  std::optional<Value> output(std::string_view name) const;
  /// After a step, the slot of node `state` takes `value`.
  void bind_state(NodeId state, Value value);
  const std::map<NodeId, Value>& state_updates() const { return state_updates_; }
  void clear_state_updates();

  // Changing. All of these keep the lists of uses true.
  void set_input(NodeId id, std::size_t index, Value value);
  void set_inputs(NodeId id, std::vector<Value> values);
  void set_attribute(NodeId id, const std::string& name, Attribute value);
  void remove_attribute(NodeId id, std::string_view name);
  void set_types(NodeId id, std::vector<Type> types);
  void rename(NodeId id, const std::string& name);
  /// Makes every reader of `from` read `to`; returns how many there were.
  int replace_all_uses(Value from, Value to);
  /// Removes a node nobody reads; otherwise fails naming it and everybody who does.
  void erase(NodeId id);

  /// The annotation of type T on a node: created empty when first asked for.
  template <typename T>
  T& annotation(NodeId id) {
    return annotations_.table<T>()[id.index];
  }
  /// The annotation of type T on a node, or nullptr.
  template <typename T>
  const T* find_annotation(NodeId id) const {
    return annotations_.find<T>(id.index);
  }
  Annotations& annotations() { return annotations_; }
  const Annotations& annotations() const { return annotations_; }

 private:
  struct Node {
    std::string name;
    const Op* op = nullptr;
    std::vector<Value> inputs;
    Attributes attributes;
    std::vector<Type> types;
    std::vector<Use> uses;
    bool alive = false;
  };
  Node& at(NodeId id);
  const Node& at(NodeId id) const;
  NodeId insert_at(std::size_t position, NodeSpec spec);
  std::size_t position(NodeId id) const;
  void add_use(Value value, Use use);
  void remove_use(Value value, const Use& use);

  std::set<std::string> symbols_;
  std::vector<Node> nodes_;
  std::vector<NodeId> order_;
  std::unordered_map<std::string, NodeId> names_;
  std::vector<std::pair<std::string, Value>> outputs_;
  std::map<NodeId, Value> state_updates_;
  Annotations annotations_;
};

/// A node for messages: `"encoder.0.up" (linear)`.
std::string described(const Graph& graph, NodeId id);

/// The result types the op's shape rule gives for a node of this graph.
std::vector<Type> infer_types(const Graph& graph, NodeId id);

/// Checks everything that must hold of a graph; fails naming the node that is wrong.
void verify(const Graph& graph);

}  // namespace lathe
