#include "lathe/engine/fusion_notes.h"

#include <algorithm>

namespace lathe::engine {
namespace {

// Why the pair stayed as it is. The first is a linear layer or, before a layer norm, an addition.
std::string reason_of(const Graph& graph, NodeId first, NodeId second) {
  const std::size_t readers = graph.uses(first).size();
  if (readers > 1)
    return fmt::format("{} results are read {} times", graph.op(first).name, readers);
  for (const Value& operand : graph.inputs(second))
    if (!operand.is_none() && operand.node != first && graph.op(second).name == "add" &&
        graph.type(operand) != graph.types(first)[0])
      return fmt::format("the other operand is {}", to_text(graph.type(operand)));
  return fmt::format("the device has no {} that takes {} in", graph.op(first).name,
                     graph.op(second).name);
}

}  // namespace

std::vector<FusionNote> explain_unfused(const Graph& lowered) {
  std::vector<FusionNote> notes;
  for (const NodeId id : lowered.topological_order()) {
    const bool is_linear = lowered.is(id, "linear") || lowered.is(id, "fused_linear");
    if (!is_linear && !lowered.is(id, "add")) continue;
    for (const NodeId user : lowered.users(id)) {
      const bool is_map = lowered.inputs(user).size() == 1 && !lowered.op(user).is_alias &&
                          lowered.types(user) == lowered.types(id);
      const bool could_fuse =
          is_linear ? is_map || lowered.is(user, "add") : lowered.is(user, "layer_norm");
      if (could_fuse)
        notes.push_back({lowered.name(id), lowered.name(user), reason_of(lowered, id, user)});
    }
  }
  return notes;
}

}  // namespace lathe::engine
