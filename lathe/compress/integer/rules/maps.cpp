#include <algorithm>

#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/unary_maps.h"

// A function of one number is a table of what it gives at every integer that can come, rounded by
// the quantizer that reads it.
namespace lathe::compress::map_rule {
namespace {

constexpr int kMostBits = 16;

// The map at every integer of the range times the scale, by the op's own reference kernel.
Tensor map_values(const Graph& graph, NodeId node, const numerics::IntegerRange& range,
                  double scale) {
  std::vector<float> x;
  for (std::int64_t code = range.low(); code <= range.high(); ++code)
    x.push_back(static_cast<float>(static_cast<double>(code) * scale));
  const std::vector<std::int64_t> dims{static_cast<std::int64_t>(x.size())};
  const Tensor operand = Tensor::from<float>(dims, std::span<const float>(x));
  const std::vector<const Tensor*> inputs{&operand};
  std::vector<Tensor> outputs{Tensor(DType::F32, dims)};
  graph.op(node).reference({graph.attribute(node), inputs, outputs});
  return outputs[0];
}

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const x = lowering.rounded_operand(node, 0);
  if (x == nullptr) return;
  // All patterns of the bits have an entry, those that never come too: a table in hardware is
  // whole.
  const numerics::IntegerRange range{.width = std::max(2, numerics::signed_bits(x->low, x->high)),
                                     .is_signed = x->low < 0};
  const numerics::IntegerRange whole =
      range.is_signed ? range
                      : numerics::IntegerRange{.width = range.width - 1, .is_signed = false};
  if (whole.width > kMostBits)
    return lowering.refuse(
        node, fmt::format("a table of {} bits is too large, at most {}", whole.width, kMostBits));
  for (const NodeId quantizer : lowering.quantizers_of(node)) {
    const std::optional<IntegerFormat> format = lowering.format_of(quantizer);
    if (!format) continue;
    const std::vector<std::int64_t> entries =
        integer_codes(map_values(graph, node, whole, x->scale()), *format);
    const Value table = lowering.add_state(graph.name(node) + ".table", entries,
                                           {std::ssize(entries)}, "buffer", format->range);
    Attributes attributes = ops::to_attributes(format->range, {format->scale});
    attributes["low"] = whole.low();
    lowering.set({quantizer, 0},
                 IntegerLowering::in_format(lowering.add({.name = graph.name(quantizer),
                                                          .op = "integer_table",
                                                          .inputs = {x->value, table},
                                                          .attributes = std::move(attributes)}),
                                            *format));
  }
}

// Every map but those that are simpler than a table.
const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const ops::UnaryMap& map : ops::unary_maps())
    if (map.name != "relu" && map.name != "identity")
      result.emplace_back(IntegerRule{map.name, lower});
  return result;
}();

}  // namespace
}  // namespace lathe::compress::map_rule
