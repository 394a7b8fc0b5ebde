#include <algorithm>

#include "lathe/compress/integer/integer_lowering.h"

// A lookup in a rounded table, or one that is rounded behind: the codes of the table's rows.
namespace lathe::compress::embedding_rule {
namespace {

Value look_up(IntegerLowering& lowering, NodeId node, const std::string& name, Value table) {
  return lowering.add(
      {.name = name, .op = "embedding", .inputs = {lowering.plain_operand(node, 0), table}});
}

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const Value table = graph.input(node, 1);
  if (!lowering.is_parameter(table)) return lowering.refuse(node, "its table is no parameter");
  const std::vector<std::int64_t> dims = graph.type(table).dims({});
  const std::string name = lowering.parameter_name(table);
  if (lowering.parameter_quantizer(table)) {
    const std::optional<IntegerParameter> integers =
        lowering.integers_of(node, table, dims[0], true);
    if (!integers) return;
    const auto [low, high] = std::ranges::minmax(integers->values);
    const Value codes = lowering.add_state(name, integers->values, dims, "codes");
    return lowering.set({node, 0}, {.value = look_up(lowering, node, graph.name(node), codes),
                                    .scales = integers->scales,
                                    .channel_axis = -1,
                                    .low = low,
                                    .high = high,
                                    .is_sum = false});
  }
  for (const NodeId quantizer : lowering.quantizers_of(node)) {
    const std::optional<IntegerFormat> format = lowering.format_of(quantizer);
    if (!format) continue;
    const Value codes = lowering.add_state(name, integer_codes(lowering.parameter(table), *format),
                                           dims, "codes", format->range);
    lowering.set(
        {quantizer, 0},
        IntegerLowering::in_format(look_up(lowering, node, graph.name(quantizer), codes), *format));
  }
}

const Register registration{IntegerRule{"embedding", lower}};

}  // namespace
}  // namespace lathe::compress::embedding_rule
