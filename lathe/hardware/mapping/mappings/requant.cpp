#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// A requant that no block in front of it does. Multipliers for each channel are factors for each
// element of a vector.
namespace lathe::hardware::requant_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  MappedValue value = mapper.operand(node, 0);
  Instance instance{.name = "", .block = "requantize", .inputs = {value.stream}};
  mapper.add_requantization(instance, node);
  if (const auto found = instance.tables.find("multiplier"); found != instance.tables.end()) {
    if (std::ssize(found->second) != mapper.type(value).size)
      fail("{} multipliers for vectors of {}", found->second.size(), mapper.type(value).size);
    instance.block = "channel_scale";
    instance.tables["summand"].resize(found->second.size());
    instance.tables["factor"] = std::move(found->second);
    instance.tables.erase("multiplier");
  }
  value.stream = mapper.add(node, std::move(instance), node);
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "requant", .map = map}};

}  // namespace
}  // namespace lathe::hardware::requant_mapping
