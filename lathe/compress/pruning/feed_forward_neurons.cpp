#include "lathe/compress/pruning/feed_forward_neurons.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lathe/compress/layers.h"
#include "lathe/compress/pruning/feature_flow.h"
#include "lathe/compress/pruning/layer_regions.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {

std::vector<PruningUnit> find_neuron_units(const Graph& graph) {
  std::vector<PruningUnit> units;
  std::set<NodeId> done;
  for (const Layer& layer : find_layers(graph)) {
    if (ops::result_axis(graph, layer.node) != -1 || done.contains(layer.node)) continue;
    const Size width = graph.types(layer.node)[0].axis(-1);
    const std::optional<FeatureFlow> flow = trace_features(graph, layer.node);
    if (!flow || flow->readers.empty() || !width.is_constant()) continue;
    const auto is_own = [&](NodeId id) { return has_own_parameters(graph, id); };
    if (!std::ranges::all_of(flow->makers, is_own) || !std::ranges::all_of(flow->readers, is_own))
      continue;
    PruningUnit unit{
        .name = graph.name(layer.node), .layers = {}, .parts = {}, .granules = width.constant()};
    for (const NodeId maker : flow->makers) {
      for (GranulePart& part : output_parts(graph, maker, 0, unit.granules, 1))
        unit.parts.push_back(std::move(part));
      unit.layers.push_back(maker);
      done.insert(maker);
    }
    for (const NodeId reader : flow->readers) {
      unit.parts.push_back(input_part(graph, reader, 1));
      unit.layers.push_back(reader);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace lathe::compress
