#include "lathe/core/graph.h"

#include <algorithm>
#include <iterator>
#include <queue>

#include "lathe/core/role.h"

namespace lathe {
namespace {

// Whether the op takes this many operands, and `none` only where it may.
void check_operands(const Op& op, const std::vector<Value>& inputs) {
  const std::size_t most = op.operands.size();
  const bool variadic = most > 0 && op.operands.back().variadic;
  std::size_t least = 0;
  for (std::size_t i = 0; i < most; ++i)
    if (!op.operands[i].optional && !op.operands[i].variadic) least = i + 1;
  if (inputs.size() < least || (!variadic && inputs.size() > most)) {
    const std::string expected = variadic       ? fmt::format("at least {}", least)
                                 : least < most ? fmt::format("{} to {}", least, most)
                                                : fmt::format("{}", most);
    fail("{} takes {} operands, not {}", op.name, expected, inputs.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OperandSpec& spec = op.operands[std::min(i, most - 1)];
    if (inputs[i].is_none() && !spec.optional)
      fail("{} needs its operand {} ({}), not none", op.name, i, spec.name);
  }
}

bool same_use(const Use& a, const Use& b) {
  return a.kind == b.kind && a.user == b.user && a.operand == b.operand && a.output == b.output;
}

}  // namespace

Graph::Node& Graph::at(NodeId id) {
  check(has(id), "a node of this graph that was not erased");
  return nodes_[static_cast<std::size_t>(id.index)];
}

const Graph::Node& Graph::at(NodeId id) const {
  check(has(id), "a node of this graph that was not erased");
  return nodes_[static_cast<std::size_t>(id.index)];
}

bool Graph::has(NodeId id) const {
  return id.index >= 0 && static_cast<std::size_t>(id.index) < nodes_.size() &&
         nodes_[static_cast<std::size_t>(id.index)].alive;
}

std::size_t Graph::position(NodeId id) const {
  const auto found = std::find(order_.begin(), order_.end(), id);
  check(found != order_.end(), "every live node to have a position");
  return static_cast<std::size_t>(found - order_.begin());
}

NodeId Graph::add(NodeSpec spec) {
  return insert_at(order_.size(), std::move(spec));
}

NodeId Graph::insert_before(NodeId place, NodeSpec spec) {
  return insert_at(position(place), std::move(spec));
}

NodeId Graph::insert_after(NodeId place, NodeSpec spec) {
  return insert_at(position(place) + 1, std::move(spec));
}

NodeId Graph::insert_at(std::size_t place, NodeSpec spec) {
  Node node;
  node.name = unique_name(spec.name.empty() ? spec.op : spec.name);
  return with_place(fmt::format("node \"{}\"", node.name), [&] {
    node.op = &OpRegistry::instance().at(spec.op, "op");
    check_operands(*node.op, spec.inputs);
    check_attributes(spec.attributes, node.op->attributes);
    for (const Value& value : spec.inputs)
      if (!value.is_none()) type(value);  // checks that it exists
    node.inputs = std::move(spec.inputs);
    node.attributes = std::move(spec.attributes);
    node.types = std::move(spec.types);
    node.alive = true;

    const NodeId id{static_cast<std::int32_t>(nodes_.size())};
    nodes_.push_back(std::move(node));
    try {
      Node& stored = nodes_.back();
      if (stored.types.empty()) stored.types = infer_types(*this, id);
      for (const Type& type : stored.types)
        for (const Size& size : type.shape)
          for (const std::string& symbol : size.symbols()) symbols_.insert(symbol);
    } catch (...) {
      nodes_.pop_back();
      throw;
    }
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place), id);
    names_.emplace(nodes_.back().name, id);
    const std::vector<Value>& inputs = nodes_.back().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      add_use(inputs[i], {Use::Kind::Operand, id, static_cast<std::int32_t>(i), {}});
    return id;
  });
}

std::string Graph::unique_name(std::string_view base) const {
  std::string candidate(base);
  for (int number = 2; names_.contains(candidate); ++number)
    candidate = fmt::format("{}_{}", base, number);
  return candidate;
}

Value Graph::input(NodeId id, std::size_t index) const {
  const std::vector<Value>& values = at(id).inputs;
  return index < values.size() ? values[index] : kNone;
}

AttributeReader Graph::attribute(NodeId id) const {
  const Node& node = at(id);
  return {node.attributes, node.op->attributes};
}

const Type& Graph::type(Value value) const {
  const Node& node = at(value.node);
  check(value.index >= 0 && static_cast<std::size_t>(value.index) < node.types.size(),
        "a result that the node has");
  return node.types[static_cast<std::size_t>(value.index)];
}

std::string Graph::name(Value value) const {
  if (value.is_none()) return "none";
  const Node& node = at(value.node);
  return node.types.size() == 1 ? node.name : fmt::format("{}#{}", node.name, value.index);
}

std::optional<NodeId> Graph::find(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

NodeId Graph::at(std::string_view name) const {
  if (const std::optional<NodeId> id = find(name)) return *id;
  std::vector<std::string> known;
  for (const auto& [known_name, id] : names_) known.push_back(known_name);
  std::sort(known.begin(), known.end());
  const std::string nearest = nearest_name(name, known);
  throw UserError(fmt::format("no node is named \"{}\"", name),
                  nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest));
}

OpCall Graph::call(NodeId id) const {
  const Node& node = at(id);
  std::vector<const Type*> inputs;
  inputs.reserve(node.inputs.size());
  for (const Value& value : node.inputs) inputs.push_back(value.is_none() ? nullptr : &type(value));
  return {*node.op, std::move(inputs), node.attributes, node.types};
}

std::vector<NodeId> Graph::topological_order() const {
  // Kahn's algorithm; among the nodes that are ready, the one written first goes first, so an order
  // that is already topological comes back unchanged.
  std::vector<std::size_t> places(nodes_.size());
  for (std::size_t i = 0; i < order_.size(); ++i)
    places[static_cast<std::size_t>(order_[i].index)] = i;
  const auto place = [&](NodeId id) { return places[static_cast<std::size_t>(id.index)]; };
  const auto comes_later = [&](std::size_t i) {
    return std::ranges::all_of(at(order_[i]).inputs, [&](const Value& value) {
      return value.is_none() || place(value.node) < i;
    });
  };
  std::size_t in_order = 0;
  while (in_order < order_.size() && comes_later(in_order)) ++in_order;
  if (in_order == order_.size()) return order_;
  std::vector<std::size_t> waiting(order_.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    for (const Value& value : at(order_[i]).inputs)
      if (!value.is_none()) ++waiting[i];
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<NodeId> result;
  result.reserve(order_.size());
  while (!ready.empty()) {
    const NodeId id = order_[ready.top()];
    ready.pop();
    result.push_back(id);
    for (const Use& use : at(id).uses) {
      if (use.kind != Use::Kind::Operand) continue;
      const std::size_t user = place(use.user);
      if (--waiting[user] == 0) ready.push(user);
    }
  }
  if (result.size() != order_.size()) {
    // A waiting node may only read the cycle; going back from operand to operand ends up inside.
    const auto is_waiting = [&](NodeId id) { return waiting[place(id)] != 0; };
    NodeId id = *std::find_if(order_.begin(), order_.end(), is_waiting);
    for (std::size_t step = 0; step < order_.size(); ++step)
      id = std::find_if(at(id).inputs.begin(), at(id).inputs.end(), [&](const Value& value) {
             return !value.is_none() && is_waiting(value.node);
           })->node;
    fail("node \"{}\" depends on itself", name(id));
  }
  return result;
}

std::vector<NodeId> Graph::nodes_of(std::string_view op_name) const {
  std::vector<NodeId> result;
  const auto is_meant = [&](NodeId id) { return is(id, op_name); };
  std::ranges::copy_if(order_, std::back_inserter(result), is_meant);
  if (result.size() < 2) return result;  // most passes look for what most graphs do not have
  result.clear();
  std::ranges::copy_if(topological_order(), std::back_inserter(result), is_meant);
  return result;
}

std::vector<NodeId> Graph::users(NodeId id) const {
  std::vector<NodeId> result;
  for (const Use& use : at(id).uses)
    if (use.kind == Use::Kind::Operand &&
        std::find(result.begin(), result.end(), use.user) == result.end())
      result.push_back(use.user);
  return result;
}

bool Graph::has_uses(Value value) const {
  for (const Use& use : at(value.node).uses) {
    if (use.kind == Use::Kind::Operand &&
        at(use.user).inputs[static_cast<std::size_t>(use.operand)] == value)
      return true;
    if (use.kind == Use::Kind::Output && output(use.output) == value) return true;
    if (use.kind == Use::Kind::StateUpdate && state_updates_.at(use.user) == value) return true;
  }
  return false;
}

void Graph::set_output(const std::string& name, Value value) {
  type(value);
  remove_output(name);
  outputs_.emplace_back(name, value);
  add_use(value, {Use::Kind::Output, {}, 0, name});
}

void Graph::remove_output(std::string_view name) {
  const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                  [&](const auto& output) { return output.first == name; });
  if (found == outputs_.end()) return;
  remove_use(found->second, {Use::Kind::Output, {}, 0, found->first});
  outputs_.erase(found);
}

std::optional<Value> Graph::output(std::string_view name) const {
  for (const auto& [output_name, value] : outputs_)
    if (output_name == name) return value;
  return std::nullopt;
}

void Graph::bind_state(NodeId state, Value value) {
  if (!is(state, "state")) fail("node \"{}\" is not a state", name(state));
  if (type(value) != at(state).types[0])
    fail("state \"{}\" is {} and cannot take {}, which is {}", name(state),
         to_text(at(state).types[0]), name(value), to_text(type(value)));
  const auto bound = state_updates_.find(state);
  if (bound != state_updates_.end())
    remove_use(bound->second, {Use::Kind::StateUpdate, state, 0, {}});
  state_updates_[state] = value;
  add_use(value, {Use::Kind::StateUpdate, state, 0, {}});
}

void Graph::clear_state_updates() {
  for (const auto& [state, value] : state_updates_)
    remove_use(value, {Use::Kind::StateUpdate, state, 0, {}});
  state_updates_.clear();
}

void Graph::set_input(NodeId id, std::size_t index, Value value) {
  Node& node = at(id);
  check(index < node.inputs.size(), "an operand that the node has");
  if (!value.is_none()) type(value);
  const Use use{Use::Kind::Operand, id, static_cast<std::int32_t>(index), {}};
  remove_use(node.inputs[index], use);
  node.inputs[index] = value;
  add_use(value, use);
}

void Graph::set_inputs(NodeId id, std::vector<Value> values) {
  check_operands(op(id), values);
  for (std::size_t i = 0; i < at(id).inputs.size(); ++i)
    remove_use(at(id).inputs[i], {Use::Kind::Operand, id, static_cast<std::int32_t>(i), {}});
  at(id).inputs = std::move(values);
  for (std::size_t i = 0; i < at(id).inputs.size(); ++i)
    add_use(at(id).inputs[i], {Use::Kind::Operand, id, static_cast<std::int32_t>(i), {}});
}

void Graph::set_attribute(NodeId id, const std::string& name, Attribute value) {
  check_attributes({{name, value}}, [&] {
    std::vector<AttributeSpec> specs = op(id).attributes;
    for (AttributeSpec& spec : specs) spec.required = false;
    return specs;
  }());
  at(id).attributes[name] = std::move(value);
}

void Graph::remove_attribute(NodeId id, std::string_view name) {
  Attributes& attributes = at(id).attributes;
  if (const auto found = attributes.find(name); found != attributes.end()) attributes.erase(found);
}

void Graph::set_types(NodeId id, std::vector<Type> types) {
  for (const Type& type : types)
    for (const Size& size : type.shape)
      for (const std::string& symbol : size.symbols()) symbols_.insert(symbol);
  at(id).types = std::move(types);
}

void Graph::rename(NodeId id, const std::string& name) {
  if (at(id).name == name) return;
  if (names_.contains(name)) fail("node \"{}\": the name \"{}\" is taken", at(id).name, name);
  names_.erase(at(id).name);
  at(id).name = name;
  names_.emplace(name, id);
}

int Graph::replace_all_uses(Value from, Value to) {
  if (from == to) return 0;
  type(to);
  int count = 0;
  const std::vector<Use> uses = at(from.node).uses;  // a copy: the list changes below
  for (const Use& use : uses) {
    switch (use.kind) {
      case Use::Kind::Operand: {
        const auto operand = static_cast<std::size_t>(use.operand);
        if (at(use.user).inputs[operand] != from) continue;
        set_input(use.user, operand, to);
        break;
      }
      case Use::Kind::Output: {
        const auto found = std::find_if(outputs_.begin(), outputs_.end(), [&](const auto& output) {
          return output.first == use.output;
        });
        if (found->second != from) continue;
        remove_use(from, use);
        found->second = to;  // in place: the order of outputs is part of the graph
        add_use(to, use);
        break;
      }
      case Use::Kind::StateUpdate:
        if (state_updates_.at(use.user) != from) continue;
        bind_state(use.user, to);
        break;
    }
    ++count;
  }
  return count;
}

void Graph::erase(NodeId id) {
  const Node& node = at(id);
  if (!node.uses.empty()) {
    std::vector<std::string> readers;
    for (const NodeId user : users(id)) readers.push_back(fmt::format("\"{}\"", name(user)));
    for (const Use& use : node.uses) {
      if (use.kind == Use::Kind::Output)
        readers.push_back(fmt::format("output \"{}\"", use.output));
      if (use.kind == Use::Kind::StateUpdate)
        readers.push_back(fmt::format("the update of state \"{}\"", name(use.user)));
    }
    throw UserError(fmt::format("cannot erase node \"{}\": it is used by {}", node.name,
                                fmt::join(readers, ", ")),
                    "replace its uses first");
  }
  if (const auto bound = state_updates_.find(id); bound != state_updates_.end()) {
    remove_use(bound->second, {Use::Kind::StateUpdate, id, 0, {}});
    state_updates_.erase(bound);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    remove_use(node.inputs[i], {Use::Kind::Operand, id, static_cast<std::int32_t>(i), {}});
  names_.erase(node.name);
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position(id)));
  annotations_.forget_node(id.index);
  at(id) = Node{};
}

void Graph::add_use(Value value, Use use) {
  if (!value.is_none()) at(value.node).uses.push_back(std::move(use));
}

void Graph::remove_use(Value value, const Use& use) {
  if (value.is_none()) return;
  std::vector<Use>& uses = at(value.node).uses;
  const auto found = std::find_if(uses.begin(), uses.end(),
                                  [&](const Use& other) { return same_use(other, use); });
  check(found != uses.end(), "every operand to be in its node's list of uses");
  uses.erase(found);
}

std::string described(const Graph& graph, NodeId id) {
  return fmt::format("\"{}\" ({})", graph.name(id), graph.op(id).name);
}

std::vector<Type> infer_types(const Graph& graph, NodeId id) {
  const Op& op = graph.op(id);
  std::vector<Type> types = op.infer(graph.call(id));
  check(types.size() == static_cast<std::size_t>(op.num_results) || op.num_results < 0,
        "as many result types as the op has results");
  return types;
}

void verify(const Graph& graph) {
  for (const NodeId id : graph.topological_order()) {
    with_place(fmt::format("node \"{}\"", graph.name(id)), [&] {
      check_operands(graph.op(id), graph.inputs(id));
      check_attributes(graph.attributes(id), graph.op(id).attributes);
      const std::vector<Type> inferred = infer_types(graph, id);
      const std::vector<Type>& written = graph.types(id);
      if (inferred.size() != written.size())
        fail("{} has {} results, not {}", graph.op(id).name, inferred.size(), written.size());
      for (std::size_t i = 0; i < inferred.size(); ++i) {
        if (inferred[i] != written[i])
          fail("{} gives {}, but {} is written", graph.op(id).name, to_text(inferred[i]),
               to_text(written[i]));
        for (const Size& size : written[i].shape)
          for (const std::string& symbol : size.symbols())
            if (!graph.symbols().contains(symbol)) fail("symbol {} is not declared", symbol);
      }
    });
  }
  check_roles(graph);
  for (const auto& [state, value] : graph.state_updates()) {
    if (!graph.is(state, "state")) fail("node \"{}\" is not a state", graph.name(state));
    if (graph.type(value) != graph.types(state)[0])
      fail("state \"{}\" is {} and cannot take {}", graph.name(state),
           to_text(graph.types(state)[0]), to_text(graph.type(value)));
  }
}

}  // namespace lathe
