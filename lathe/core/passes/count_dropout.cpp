#include "lathe/core/pass.h"
#include "lathe/core/passes/dropout.h"

namespace lathe {

DropoutCount count_dropout(const Graph& graph) {
  DropoutCount count;
  for (const NodeId id : graph.topological_order()) {
    const Op& op = graph.op(id);
    if (op.dropout_attribute.empty()) continue;
    if (op.is_identity_in_inference)
      ++count.nodes;
    else if (graph.attribute(id).real(op.dropout_attribute) > 0)
      ++count.attributes;
  }
  return count;
}

namespace {

PassResult report_dropout(Graph& graph, PassContext&) {
  const DropoutCount count = count_dropout(graph);
  return {0, fmt::format("{} dropout node{}, {} attention attribute{}", count.nodes,
                         count.nodes == 1 ? "" : "s", count.attributes,
                         count.attributes == 1 ? "" : "s")};
}

const Register count_dropout_pass{Pass{
    .name = "count-dropout",
    .summary = "count dropout nodes, and dropout rates inside attention",
    .run = report_dropout,
}};

}  // namespace
}  // namespace lathe
