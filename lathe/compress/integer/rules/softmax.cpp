#include "lathe/compress/integer/exponents.h"
#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/numerics/integer/scale_multiplier.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::compress::softmax_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const x = lowering.rounded_operand(node, 0);
  if (x == nullptr) return;
  const auto rank = static_cast<std::int64_t>(graph.types(node)[0].rank());
  if (const std::int64_t axis = graph.attribute(node).integer("axis");
      axis != -1 && axis != rank - 1)
    return lowering.refuse(node, "it is not along the last axis");
  const std::optional<Attributes> exponents =
      exponent_attributes(lowering, node, x->scale(), x->high - x->low);
  if (!exponents) return;
  for (const NodeId quantizer : lowering.quantizers_of(node)) {
    const std::optional<IntegerFormat> format = lowering.format_of(quantizer);
    if (!format) continue;
    const std::vector<double> ratio{1.0 / format->scale};
    const numerics::ScaleMultipliers found =
        numerics::multipliers_of(ratio, numerics::kMultiplierBits);
    const int up = std::max(0, -found.shift);  // the sum is never shifted to the right
    if (up > 13 || found.shift > 40) {
      lowering.refuse(quantizer, fmt::format("a scale of {} for numbers up to 1", format->scale));
      continue;
    }
    Attributes attributes = ops::to_attributes(format->range, {format->scale});
    attributes.insert(exponents->begin(), exponents->end());
    attributes["multiplier"] = found.multipliers[0] << up;
    attributes["shift"] = std::int64_t{found.shift + up};
    lowering.set({quantizer, 0},
                 IntegerLowering::in_format(lowering.add({.name = graph.name(quantizer),
                                                          .op = "integer_softmax",
                                                          .inputs = {x->value},
                                                          .attributes = std::move(attributes)}),
                                            *format));
  }
}

const Register registration{IntegerRule{"softmax", lower}};

}  // namespace
}  // namespace lathe::compress::softmax_rule
