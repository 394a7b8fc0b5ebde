#include <algorithm>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/ops/integer/integer_result.h"

// Where tensors enter. Rounding floats is the host's: the stream carries integers. Images, which
// have three axes, come pixel by pixel and channel by channel; others row by row.
namespace lathe::hardware::to_integer_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const Value x = graph.input(node, 0);
  if (!graph.is(x.node, "input")) fail("it is no input of the model");
  const AttributeReader attributes = graph.attribute(node);
  DesignPort port{.name = graph.name(x),
                  .node = graph.name(node),
                  .dims = mapper.example_dims(x),
                  .range = ops::integer_range(attributes),
                  .scale = attributes.reals(ops::kScale)};
  const std::vector<std::int64_t>& dims = port.dims;
  if (dims.empty() || dims.size() > 3) fail("{} axes, and expected one to three", dims.size());
  const std::int64_t count =
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  Stream stream{.element = {.width = port.range.width,
                            .is_signed = port.range.is_signed,
                            .meaning = meaning_of(port.range, port.scale)},
                .lanes = mapper.wanted_lanes({node, 0}),
                .size = dims.size() == 3 ? dims[0] : dims.back()};
  stream.vectors = count / stream.size;
  if (dims.size() == 3)
    for (std::int64_t pixel = 0; pixel < stream.vectors; ++pixel)
      for (std::int64_t channel = 0; channel < stream.size; ++channel)
        port.order.push_back(channel * stream.vectors + pixel);
  // An input that is rounded twice enters twice.
  const bool is_again = std::ranges::any_of(
      mapper.inputs, [&](const auto& other) { return other.name == port.name; });
  const std::string& name = is_again ? port.node : port.name;
  mapper.set(
      node,
      {.stream = mapper.netlist.add_input(name, stream), .dims = port.dims, .order = port.order});
  mapper.inputs.push_back(std::move(port));
}

const Register registration{BlockMapping{.name = "to_integer", .map = map}};

}  // namespace
}  // namespace lathe::hardware::to_integer_mapping
