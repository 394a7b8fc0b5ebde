#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/image_windows.h"
#include "lathe/ops/pooling_windows.h"

// Pooling gathers the pixels under a window: a sum, which is a mean of another scale and rounded
// with the requant behind it, or the largest, which padding never is.
namespace lathe::hardware::pooling_mapping {
namespace {

void add_pool(GraphMapper& mapper, NodeId node, Instance instance, NodeId result,
              std::int64_t outside) {
  const ops::Window window =
      ops::pooling_window(mapper.graph().op(node).name, mapper.graph().attribute(node));
  instance.parameters["count"] = window.kernel[0] * window.kernel[1];
  instance.inputs = {
      add_windows(mapper, node, window, mapper.type(image_operand(mapper, node)).lanes, outside)};
  const MappedValue y =
      mapped_image(mapper.add(node, std::move(instance), result), mapper.example_dims({node, 0}));
  mapper.set(node, y);
  mapper.set(result, y);
}

void map_sum(GraphMapper& mapper, NodeId node) {
  Instance instance{.name = "", .block = "window_reduce", .parameters = {{"op", 0}}};
  const NodeId result = mapper.requant_behind(node).value_or(node);
  mapper.add_requantization(instance, result);
  add_pool(mapper, node, std::move(instance), result, 0);
}

void map_largest(GraphMapper& mapper, NodeId node) {
  const Element& element = mapper.type(image_operand(mapper, node)).element;
  add_pool(
      mapper, node,
      {.name = "",
       .block = "window_reduce",
       .parameters = {{"op", 1}, {"width", element.width}, {"signed", element.is_signed ? 1 : 0}}},
      node, element.lowest());
}

const Register sum{BlockMapping{.name = "integer_sum_pool2d", .map = map_sum}};
const Register largest{BlockMapping{.name = "max_pool2d", .map = map_largest}};

}  // namespace
}  // namespace lathe::hardware::pooling_mapping
