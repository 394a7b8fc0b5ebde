#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/ops/integer/integer_result.h"

// The sum of two streams, in the lanes of the first. Forks and FIFOs come later.
namespace lathe::hardware::integer_add_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  const AttributeReader attributes = mapper.graph().attribute(node);
  const MappedValue a = mapper.operand(node, 0), b = mapper.operand(node, 1);
  if (a.dims != b.dims || a.order != b.order) fail("operands of two shapes");
  Instance instance{
      .name = "",
      .block = "element_wise",
      .parameters = {{"multiplier_a", ops::multiplier_attribute(attributes, "multiplier_a")},
                     {"multiplier_b", ops::multiplier_attribute(attributes, "multiplier_b")}}};
  const NodeId result = mapper.requant_behind(node).value_or(node);
  mapper.add_requantization(instance, result);
  instance.inputs = {a.stream, mapper.read(node, 1, mapper.type(a).lanes)};
  MappedValue y = a;
  y.stream = mapper.add(node, std::move(instance), result);
  mapper.set(node, y);
  mapper.set(result, y);
}

const Register registration{BlockMapping{.name = "integer_add", .map = map}};

}  // namespace
}  // namespace lathe::hardware::integer_add_mapping
