#include "lathe/compress/shrinking/full_masks.h"

#include <algorithm>
#include <vector>

#include "lathe/compress/rounded_parameter.h"
#include "lathe/core/pass.h"

namespace lathe::compress {
namespace {

bool is_all_ones(const Tensor& mask) {
  for (std::int64_t i = 0; i < mask.num_elements(); ++i)
    if (mask.at(i) != 1) return false;
  return true;
}

}  // namespace

void drop_full_masks(Graph& graph, State& state) {
  for (const NodeId id : graph.nodes_of("mul")) {
    const std::optional<std::size_t> masked = masked_operand(graph, id);
    if (!masked) continue;
    const Value mask = graph.input(id, 1 - *masked);
    if (!is_all_ones(state.at(graph.name(mask)))) continue;
    // A quantizer in front of the product may read it for its scales.
    std::vector<NodeId> readers = graph.users(mask.node);
    std::erase(readers, id);
    if (!std::ranges::all_of(readers, [&](NodeId one) { return graph.is(one, "quantize"); }))
      continue;
    graph.replace_all_uses({id, 0}, graph.input(id, *masked));
    for (const NodeId reader : readers) {
      std::vector<Value> inputs = graph.inputs(reader);
      std::ranges::replace(inputs, mask, kNone);
      while (inputs.back().is_none()) inputs.pop_back();
      graph.set_inputs(reader, std::move(inputs));
    }
  }
  run_pass("remove-dead-nodes", graph);
  std::erase_if(state, [&](const auto& entry) { return !graph.find(entry.first); });
}

}  // namespace lathe::compress
