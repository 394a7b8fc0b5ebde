#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/graph_mapper.h"

// One row of a sequence.
namespace lathe::hardware::select_mapping {
namespace {

void map(GraphMapper& mapper, NodeId node) {
  const AttributeReader attributes = mapper.graph().attribute(node);
  const MappedValue x = mapper.operand(node, 0);
  const auto rank = static_cast<std::int64_t>(x.dims.size());
  // The graph's axes begin with the examples.
  std::int64_t axis = attributes.integer("axis");
  axis = axis < 0 ? axis + rank : axis - 1;
  if (rank != 2 || axis != 0 || !x.order.empty()) fail("only rows of a sequence are selected");
  std::int64_t row = attributes.integer("index");
  if (row < 0) row += x.dims[0];
  const Stream& type = mapper.type(x);
  if (type.vectors != x.dims[0]) fail("rows in several vectors");
  mapper.set(node, {.stream = mapper.add(node,
                                         {.name = "",
                                          .block = "vector_select",
                                          .parameters = {{"index", row}},
                                          .inputs = {x.stream}},
                                         node),
                    .dims = {x.dims[1]}});
}

const Register registration{BlockMapping{.name = "select", .map = map}};

}  // namespace
}  // namespace lathe::hardware::select_mapping
