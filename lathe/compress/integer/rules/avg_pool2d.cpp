#include <algorithm>

#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/pooling_windows.h"

// A mean is an exact sum whose scale is divided by the window's size.
namespace lathe::compress::avg_pool2d_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const x = lowering.rounded_operand(node, 0);
  if (x == nullptr) return;
  const AttributeReader attributes = graph.attribute(node);
  const ops::Window window = ops::pooling_window("avg_pool2d", attributes);
  const bool has_pads = std::ranges::any_of(window.pads, [](std::int64_t pad) { return pad != 0; });
  if (has_pads && !attributes.flag("count_include_pad"))
    return lowering.refuse(node, "its windows at the edge are divided by less than those inside");
  const std::int64_t area = window.kernel[0] * window.kernel[1];
  IntegerValue result = *x;
  result.low = x->low * area;
  result.high = x->high * area;
  if (has_pads) result.low = std::min<numerics::Integer128>(result.low, 0);
  result.scales = {x->scale() / static_cast<double>(area)};
  result.is_sum = true;
  const int width = std::max(2, numerics::signed_bits(result.low, result.high));
  if (width > 64)
    return lowering.refuse(node, fmt::format("a sum needs {} bits, more than 64", width));
  NodeSpec spec{.name = graph.name(node),
                .op = "integer_sum_pool2d",
                .inputs = {x->value},
                .attributes = graph.attributes(node)};
  spec.attributes.erase("count_include_pad");
  for (auto& [name, value] : ops::to_attributes({.width = width}, result.scales))
    spec.attributes[name] = value;
  result.value = lowering.add(std::move(spec));
  lowering.set({node, 0}, std::move(result));
}

const Register registration{IntegerRule{"avg_pool2d", lower}};

}  // namespace
}  // namespace lathe::compress::avg_pool2d_rule
