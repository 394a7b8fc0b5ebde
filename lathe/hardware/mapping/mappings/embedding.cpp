#include <algorithm>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// Tables of words are larger than a device's memory: the host looks rows up, and they enter as a
// stream.
namespace lathe::hardware::embedding_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const Values table = mapper.integers(graph.input(node, 1));
  const auto [low, high] = std::ranges::minmax(table);
  DesignPort port{.name = graph.name(node),
                  .node = graph.name(node),
                  .dims = mapper.example_dims({node, 0}),
                  .range = {.width = signed_width(low, high)},
                  .scale = {1.0}};
  if (port.dims.empty()) fail("a lookup of one row, and expected rows of an example");
  Stream stream{.element = {.width = port.range.width},
                .lanes = mapper.wanted_lanes({node, 0}),
                .size = port.dims.back()};
  stream.vectors =
      std::accumulate(port.dims.begin(), port.dims.end() - 1, std::int64_t{1}, std::multiplies<>());
  mapper.set(
      node, {.stream = mapper.netlist.add_input(mapper.new_name(node), stream), .dims = port.dims});
  mapper.inputs.push_back(std::move(port));
}

const Register registration{BlockMapping{.name = "embedding", .map = map}};

}  // namespace
}  // namespace lathe::hardware::embedding_mapping
