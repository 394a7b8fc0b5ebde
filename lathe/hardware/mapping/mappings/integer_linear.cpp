#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// A matrix_vector, with the requant behind it. An image that became one vector is read pixel by
// pixel: a product then takes several vectors of the stream, and the columns of the weight follow
// the order of the stream.
namespace lathe::hardware::integer_linear_mapping {
namespace {

std::pair<std::int64_t, std::int64_t> sizes(const GraphMapper& mapper, NodeId node) {
  return {mapper.type(mapper.operand(node, 0)).size,
          mapper.example_dims(mapper.graph().input(node, 1)).front()};
}

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const MappedValue x = mapper.operand(node, 0);
  const auto [in, outputs] = sizes(mapper, node);
  const Lanes lanes = mapper.lanes(node, in, outputs);
  const std::int64_t columns = x.dims.back();
  const Values weight = mapper.integers(graph.input(node, 1));
  Instance instance{.name = "",
                    .block = "matrix_vector",
                    .parameters = {{"outputs", outputs},
                                   {"lanes", lanes.out},
                                   {"groups", columns / mapper.type(x).size}},
                    .tables = {{"weight", weight}}};
  if (!x.order.empty()) {
    if (x.dims.size() != 1) fail("x is an image of {} axes", x.dims.size());
    Values& ordered = instance.tables["weight"];
    for (std::int64_t row = 0; row < outputs; ++row)
      for (std::int64_t i = 0; i < columns; ++i)
        ordered[static_cast<std::size_t>(row * columns + i)] =
            weight[static_cast<std::size_t>(row * columns + x.order[static_cast<std::size_t>(i)])];
  }
  if (const Value bias = graph.input(node, 2); !bias.is_none())
    instance.tables["bias"] = mapper.integers(bias);
  const NodeId result = mapper.requant_behind(node).value_or(node);
  mapper.add_requantization(instance, result);
  instance.inputs = {mapper.read(node, 0, lanes.in)};
  MappedValue y{.stream = mapper.add(node, std::move(instance), result), .dims = x.dims};
  y.dims.back() = outputs;
  mapper.set(node, y);
  mapper.set(result, y);
}

const Register registration{BlockMapping{.name = "integer_linear", .map = map, .sizes = sizes}};

}  // namespace
}  // namespace lathe::hardware::integer_linear_mapping
