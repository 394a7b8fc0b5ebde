#include "lathe/core/role.h"

#include <array>

namespace lathe {
namespace {

constexpr const char* kRole = "role";

constexpr std::array<std::string_view, 9> kStateRoles{
    "parameter", "buffer", "mask", "scale", "zero", "codes", "moment", "counter", "cache"};

// The reader that asks most of a state, and what it asks.
struct Requirement {
  StateRole role;
  NodeId reader;
};
std::optional<Requirement> find_requirement(const Graph& graph, NodeId state) {
  for (const Use& use : graph.uses(state)) {
    if (use.kind != Use::Kind::Operand) continue;
    const auto role =
        required_role(operand_role(graph, use.user, static_cast<std::size_t>(use.operand)));
    if (role) return Requirement{*role, use.user};
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(StateRole role) {
  return kStateRoles[static_cast<std::size_t>(role)];
}

StateRole parse_state_role(std::string_view text) {
  for (std::size_t i = 0; i < kStateRoles.size(); ++i)
    if (kStateRoles[i] == text) return static_cast<StateRole>(i);
  throw unknown_name("role of a state", text, {kStateRoles.begin(), kStateRoles.end()});
}

StateRole state_role(const Graph& graph, NodeId state) {
  check(graph.is(state, "state"), "only states to be asked for their role");
  const auto written = graph.attributes(state).find(kRole);
  if (written == graph.attributes(state).end()) return StateRole::Parameter;
  return parse_state_role(std::get<std::string>(written->second));
}

std::vector<NodeId> states_of(const Graph& graph, StateRole role) {
  std::vector<NodeId> found;
  for (const NodeId id : graph.nodes_of("state"))
    if (state_role(graph, id) == role) found.push_back(id);
  return found;
}

std::int64_t num_elements(const Graph& graph, StateRole role) {
  std::int64_t count = 0;
  for (const NodeId id : states_of(graph, role))
    count += graph.types(id)[0].num_elements().constant();
  return count;
}

bool is_of_model(StateRole role) {
  return role != StateRole::Moment && role != StateRole::Counter && role != StateRole::Cache;
}

std::string_view name(OperandRole role) {
  constexpr std::array<std::string_view, 12> kNames{"operand",   "input", "weight", "bias",
                                                    "table",     "query", "key",    "content",
                                                    "statistic", "scale", "zero",   "codes"};
  return kNames[static_cast<std::size_t>(role)];
}

OperandRole operand_role(const Graph& graph, NodeId node, std::size_t index) {
  const std::vector<OperandSpec>& specs = graph.op(node).operands;
  if (specs.empty()) return OperandRole::Other;
  return specs[std::min(index, specs.size() - 1)].role;
}

std::optional<std::size_t> find_operand(const Graph& graph, NodeId node, OperandRole role) {
  for (std::size_t i = 0; i < graph.inputs(node).size(); ++i)
    if (!graph.inputs(node)[i].is_none() && operand_role(graph, node, i) == role) return i;
  return std::nullopt;
}

std::size_t operand_index(const Graph& graph, NodeId node, OperandRole role) {
  const std::optional<std::size_t> index = find_operand(graph, node, role);
  if (!index)
    throw InternalError(fmt::format("an operand {} of {}", name(role), described(graph, node)),
                        std::source_location::current());
  return *index;
}

std::optional<StateRole> required_role(OperandRole role) {
  switch (role) {
    case OperandRole::Scale:
      return StateRole::Scale;
    case OperandRole::Zero:
      return StateRole::Zero;
    case OperandRole::Codes:
      return StateRole::Codes;
    case OperandRole::Statistic:
      return StateRole::Buffer;
    default:
      return std::nullopt;
  }
}

void complete_roles(Graph& graph) {
  for (const NodeId id : graph.nodes_of("state")) {
    if (graph.attributes(id).contains(kRole)) continue;
    if (const std::optional<Requirement> required = find_requirement(graph, id))
      graph.set_attribute(id, kRole, std::string(name(required->role)));
  }
}

void check_roles(const Graph& graph) {
  for (const NodeId id : graph.nodes_of("state")) {
    with_place(fmt::format("node \"{}\"", graph.name(id)), [&] {
      const StateRole role = state_role(graph, id);
      const std::optional<Requirement> required = find_requirement(graph, id);
      if (required && required->role != role)
        fail("its role is {}, but node \"{}\" reads it as one of role {}", name(role),
             graph.name(required->reader), name(required->role));
    });
  }
}

}  // namespace lathe
