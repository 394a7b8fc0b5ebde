#include "lathe/train/use_batch_statistics.h"

#include "lathe/core/role.h"

namespace lathe::train {
namespace {

constexpr std::size_t kMean = 3, kVariance = 4;

bool keeps_own(const Graph& graph, NodeId norm, std::size_t operand) {
  const NodeId statistic = graph.input(norm, operand).node;
  return graph.is(statistic, "state") && state_role(graph, statistic) == StateRole::Buffer &&
         graph.uses(statistic).size() == 1;
}

}  // namespace

std::vector<SeenStatistic> use_batch_statistics(
    Graph& graph, const std::function<bool(const std::string&)>& is_frozen) {
  std::vector<SeenStatistic> result;
  for (const NodeId id : graph.topological_order()) {
    if (!graph.is(id, "batch_norm")) continue;
    if (!keeps_own(graph, id, kMean) || !keeps_own(graph, id, kVariance)) continue;
    const NodeId mean = graph.input(id, kMean).node, variance = graph.input(id, kVariance).node;
    if (is_frozen(graph.name(mean)) || is_frozen(graph.name(variance))) continue;
    const std::string name = graph.name(id);
    const NodeId trained = graph.insert_before(
        id, {.name = name + "/trained",
             .op = "normalize_batch",
             .inputs = {graph.input(id, 0), graph.input(id, 1), graph.input(id, 2)},
             .attributes = graph.attributes(id)});
    graph.replace_all_uses({id, 0}, {trained, 0});
    graph.erase(id);
    graph.rename(trained, name);
    result.push_back({mean, {trained, 1}});
    result.push_back({variance, {trained, 2}});
  }
  return result;
}

}  // namespace lathe::train
