#include "lathe/ops/weight_layout.h"

namespace lathe::ops {
namespace {

const WeightLayout* find_layout(const Graph& graph, NodeId node) {
  return WeightLayoutRegistry::instance().find(graph.op(node).name);
}

}  // namespace

std::int64_t weight_axis(const Graph& graph, NodeId node) {
  const WeightLayout* const layout = find_layout(graph, node);
  return layout == nullptr || !layout->output_axis ? 0 : layout->output_axis(graph, node);
}

std::int64_t result_axis(const Graph& graph, NodeId node) {
  const WeightLayout* const layout = find_layout(graph, node);
  return layout == nullptr ? -1 : layout->result_axis;
}

}  // namespace lathe::ops
