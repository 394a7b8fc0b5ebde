#include "lathe/engine/bound_value.h"

#include "lathe/core/role.h"

namespace lathe::engine {

bool is_read_besides_its_state(const Graph& graph, const Value& value) {
  int updates = 0;
  for (const Use& use : graph.uses(value.node)) {
    if (use.kind == Use::Kind::Operand &&
        graph.input(use.user, static_cast<std::size_t>(use.operand)) == value)
      return true;
    if (use.kind == Use::Kind::Output && graph.output(use.output) == value) return true;
    if (use.kind == Use::Kind::StateUpdate && graph.state_updates().at(use.user) == value)
      ++updates;
  }
  return updates > 1;
}

bool changes_parameters(const Graph& graph) {
  for (const auto& [state, value] : graph.state_updates())
    if (state_role(graph, state) != StateRole::Cache) return true;
  return false;
}

}  // namespace lathe::engine
