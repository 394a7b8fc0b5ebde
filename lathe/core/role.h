#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lathe/core/graph.h"

/// What states and operands are for. Who trains, decays, packs, prunes, exports or counts asks the
/// role, never a name.
namespace lathe {

/// What a state is kept for: the attribute `role` of op `state`.
enum class StateRole {
  Parameter,  ///< learned
  Buffer,     ///< part of the model, but not learned: running statistics, a frozen teacher
  Mask,       ///< ones and zeros that a parameter is multiplied with
  Scale,      ///< of a number format
  Zero,       ///< zero point of a number format
  Codes,      ///< a parameter as the bits of its number format
  Moment,     ///< what an optimizer remembers from step to step
  Counter,    ///< counts steps
  Cache,      ///< what one run leaves for the next
};
/// "parameter", "buffer", "mask", "scale", "zero", "codes", "moment", "counter", "cache".
std::string_view name(StateRole role);
/// The role of that name; fails with the nearest one.
StateRole parse_state_role(std::string_view text);

/// The role of a node of op `state`.
StateRole state_role(const Graph& graph, NodeId state);
/// Every state of a role, in topological order.
std::vector<NodeId> states_of(const Graph& graph, StateRole role);
/// How many elements the states of a role have together.
std::int64_t num_elements(const Graph& graph, StateRole role);
/// Whether a state is the model's own, and not the memory of a run or of training.
bool is_of_model(StateRole role);

/// "input", "weight", ... for messages.
std::string_view name(OperandRole role);
/// What operand `index` is to its op; a variadic operand's role counts for all that follow.
OperandRole operand_role(const Graph& graph, NodeId node, std::size_t index);
/// The index of the first operand of that role that is there; nullopt when there is none.
std::optional<std::size_t> find_operand(const Graph& graph, NodeId node, OperandRole role);
/// The same where there must be one.
std::size_t operand_index(const Graph& graph, NodeId node, OperandRole role);
/// The role that a state must have to be read as such an operand; nullopt where any will do.
std::optional<StateRole> required_role(OperandRole role);

/// Gives every state without a written role the one that its readers require: what graphs written
/// before there were roles, and graphs written by hand, leave out.
void complete_roles(Graph& graph);
/// Fails naming a state whose role is unknown or not what a reader requires.
void check_roles(const Graph& graph);

}  // namespace lathe
