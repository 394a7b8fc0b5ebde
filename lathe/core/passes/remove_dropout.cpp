#include "lathe/core/pass.h"

namespace lathe {
namespace {

// In inference a dropout node is its operand, and a rate inside another op counts as zero; taking
// both away leaves a graph that can only be used for inference.
int remove_dropout(Graph& graph) {
  int removed = 0;
  for (const NodeId id : graph.topological_order()) {
    const Op& op = graph.op(id);
    if (op.dropout_attribute.empty()) continue;
    if (op.is_identity_in_inference) {
      graph.replace_all_uses({id, 0}, graph.input(id, 0));
      graph.erase(id);
      ++removed;
    } else if (graph.attribute(id).real(op.dropout_attribute) > 0) {
      graph.remove_attribute(id, op.dropout_attribute);
      ++removed;
    }
  }
  return removed;
}

const Register remove_dropout_pass{Pass{
    .name = "remove-dropout",
    .summary = "remove dropout nodes, and the dropout inside attention",
    .run = remove_dropout,
}};

}  // namespace
}  // namespace lathe
