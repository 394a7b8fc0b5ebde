#include "lathe/compress/pruning/pruning_report.h"

#include <algorithm>

#include "lathe/core/parameters.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"

namespace lathe::compress {
namespace {

std::int64_t count_zeros(const Tensor& tensor) {
  return std::ranges::count(tensor.data<float>(), 0.0f);
}

// What a mask covers: the parameter that it is multiplied with, or the one that codes stand for.
std::string covered(const Graph& graph, const Parameters& parameters, NodeId mask) {
  for (const NodeId product : graph.users(mask))
    for (const NodeId source : parameters.sources({product, 0})) {
      if (state_role(graph, source) != StateRole::Codes) return graph.name(source);
      for (const NodeId decode : graph.users(source))
        if (const auto of = graph.attributes(decode).find("of");
            of != graph.attributes(decode).end())
          return std::get<std::string>(of->second);
    }
  return graph.name(mask);
}

}  // namespace

UnitReport report_unit(const PruningUnit& unit, const State& masks) {
  UnitReport report{.unit = unit.name, .shape = {}, .granularity = {}, .method = {}};
  report.granules = unit.granules;
  if (unit.parts.size() == 1) report.shape = masks.at(unit.parts.front().state).dims();
  std::vector<std::int64_t> left(static_cast<std::size_t>(unit.granules), 0);
  for (const GranulePart& part : unit.parts) {
    const Tensor mask = ops::to_matrix(masks.at(part.state), part.axis);
    for_each_element(part, [&](std::size_t granule, std::size_t i) {
      ++report.elements;
      if (mask.data<float>()[i] == 0)
        ++report.zeros;
      else
        ++left[granule];
    });
  }
  report.pruned =
      std::ranges::count_if(left, [&](std::int64_t elements) { return elements <= unit.kept; });
  return report;
}

std::vector<MaskReport> report_masks(const Graph& graph, const State& state) {
  const Parameters parameters(graph);
  std::vector<MaskReport> reports;
  for (const NodeId mask : states_of(graph, StateRole::Mask)) {
    const auto found = state.find(graph.name(mask));
    if (found == state.end() || found->second.dtype() != DType::F32) continue;
    reports.push_back({.parameter = covered(graph, parameters, mask),
                       .shape = found->second.dims(),
                       .elements = found->second.num_elements(),
                       .zeros = count_zeros(found->second)});
  }
  return reports;
}

}  // namespace lathe::compress
