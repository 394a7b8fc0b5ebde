#include <algorithm>

#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// The elements of a beat share a slope, so the lanes are part of what is computed: where the layer
// in front has others, they are converted.
namespace lathe::hardware::integer_rrelu_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  const AttributeReader attributes = mapper.graph().attribute(node);
  MappedValue value = mapper.operand(node, 0);
  if (!value.order.empty()) fail("an image that comes pixel by pixel");
  if (mapper.type(value).size != value.dims.back()) fail("rows in several vectors");
  const auto lanes =
      static_cast<int>(std::min(attributes.integer("lanes"), mapper.type(value).size));
  value.stream = mapper.add(
      node,
      {.name = "",
       .block = "random_leaky_relu",
       .parameters = {{"seed", attributes.integer("first")}, {"taps", attributes.integer("taps")}},
       .inputs = {mapper.read(node, 0, lanes)}},
      node);
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "integer_rrelu", .map = map}};

}  // namespace
}  // namespace lathe::hardware::integer_rrelu_mapping
