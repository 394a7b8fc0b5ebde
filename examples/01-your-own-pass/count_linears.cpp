// An analysis pass: it looks at the graph, changes nothing, and says what it found.
#include <lathe/core/pass.h>

namespace {

// The weight is operand 1 of `linear` and has a constant shape, [outputs, inputs].
lathe::PassResult count_linears(lathe::Graph& graph, lathe::PassContext&) {
  int count = 0;
  std::int64_t num_weights = 0;
  for (const lathe::NodeId id : graph.nodes_of("linear")) {
    const lathe::Type& weight = graph.type(graph.input(id, 1));
    num_weights += weight.axis(0).constant() * weight.axis(1).constant();
    ++count;
  }
  return {0, fmt::format("{} linears with {} weights", count, num_weights)};
}

// Registering makes the pass known by name: to run_pass, to pipelines, to the list of passes.
const lathe::Register registration{lathe::Pass{
    .name = "count-linears",
    .summary = "count the linears and their weights",
    .run = count_linears,
}};

}  // namespace
