#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// Names the axes anew and moves nothing: elements keep their number, row by row, and their place in
// the stream. The stream stays as it is where an image becomes one vector; other changes of the
// vectors' size are left to blocks that reorder.
namespace lathe::hardware::reshape_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  MappedValue value = mapper.operand(node, 0);
  const std::vector<std::int64_t> dims = mapper.example_dims({node, 0});
  if (dims.size() != 1 && dims.back() != mapper.type(value).size)
    fail("rows of {} become rows of {}", mapper.type(value).size, dims.back());
  value.dims = dims;
  mapper.set(node, std::move(value));
}

const Register registration{BlockMapping{.name = "reshape", .map = map}};

}  // namespace
}  // namespace lathe::hardware::reshape_mapping
