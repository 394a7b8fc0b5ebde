#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// A requant that no block in front of it does.
namespace lathe::hardware::requant_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  MappedValue value = mapper.operand(node, 0);
  Instance instance{.name = "", .block = "requantize", .inputs = {value.stream}};
  mapper.add_requantization(instance, node);
  if (instance.tables.contains("multiplier"))
    fail("a multiplier for each channel, and no layer in front that applies it");
  value.stream = mapper.add(node, std::move(instance), node);
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "requant", .map = map}};

}  // namespace
}  // namespace lathe::hardware::requant_mapping
