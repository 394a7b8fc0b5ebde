#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// Where tensors leave: the stream itself. Multiplying by the scale is the host's.
namespace lathe::hardware::from_integer_mapping {
namespace {

const Register registration{BlockMapping{
    .name = "from_integer",
    .map = [](GraphMapper& mapper, NodeId node) { mapper.set(node, mapper.operand(node, 0)); }}};

}  // namespace
}  // namespace lathe::hardware::from_integer_mapping
