#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

namespace lathe::hardware::relu_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  MappedValue value = mapper.operand(node, 0);
  if (mapper.type(value).element.is_signed)
    value.stream = mapper.add(node, {.name = "", .block = "relu", .inputs = {value.stream}}, node);
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "relu", .map = map}};

}  // namespace
}  // namespace lathe::hardware::relu_mapping
