#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

namespace lathe::hardware::argmax_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  MappedValue value = mapper.operand(node, 0);
  if (!value.order.empty() || mapper.type(value).size != value.dims.back())
    fail("only along rows that come element by element");
  value.stream = mapper.add(
      node,
      {.name = "", .block = "row_reduce", .parameters = {{"op", 4}}, .inputs = {value.stream}},
      node);
  value.dims.pop_back();
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "argmax", .map = map}};

}  // namespace
}  // namespace lathe::hardware::argmax_mapping
