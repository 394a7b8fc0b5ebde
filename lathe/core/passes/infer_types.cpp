#include "lathe/core/pass.h"

namespace lathe {
namespace {

// Result types follow from operand types, so one walk in topological order reaches every node.
int infer_all_types(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.topological_order()) {
    std::vector<Type> types = with_place(fmt::format("node \"{}\"", graph.name(id)),
                                         [&] { return infer_types(graph, id); });
    if (types == graph.types(id)) continue;
    graph.set_types(id, std::move(types));
    ++changed;
  }
  return changed;
}

const Register infer_types_pass{Pass{
    .name = "infer-types",
    .summary = "derive every node's result types and shapes from its operands",
    .run = infer_all_types,
}};

}  // namespace
}  // namespace lathe
