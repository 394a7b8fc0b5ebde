#include "lathe/compress/shrinking/full_masks.h"

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
    const NodeId mask = graph.input(id, 1 - *masked).node;
    if (is_read_once(graph, mask) && is_all_ones(state.at(graph.name(mask))))
      graph.replace_all_uses({id, 0}, graph.input(id, *masked));
  }
  run_pass("remove-dead-nodes", graph);
  std::erase_if(state, [&](const auto& entry) { return !graph.find(entry.first); });
}

}  // namespace lathe::compress
