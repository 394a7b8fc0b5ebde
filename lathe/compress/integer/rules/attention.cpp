#include <algorithm>
#include <cmath>

#include "lathe/compress/integer/exponents.h"
#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/compress/quantizers.h"
#include "lathe/numerics/integer/scale_multiplier.h"
#include "lathe/ops/integer/integer_result.h"

// docs/integer.md, "Softmax": weights stay 15-bit exponentials, and the result is divided once.
namespace lathe::compress::attention_rule {
namespace {

using numerics::Integer128;

Integer128 magnitude(const IntegerValue& value) {
  return std::max<Integer128>(-value.low, value.high);
}

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  std::vector<const IntegerValue*> operands;
  for (const std::size_t i : {0, 1, 2}) {
    operands.push_back(lowering.rounded_operand(node, i));
    if (operands.back() == nullptr) return;
  }
  const AttributeReader attributes = graph.attribute(node);
  if (const std::string& format = attributes.text(kWeightFormat); !format.empty())
    return lowering.refuse(node, fmt::format("its weights are rounded to {}, but stay exponentials "
                                             "of 15 bits in integers",
                                             format));
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t head_size = graph.types(node)[0].axis(-1).constant() / heads;
  const double factor = attributes.real("scale") != 0
                            ? attributes.real("scale")
                            : 1.0 / std::sqrt(static_cast<double>(head_size));
  const auto [q, k, v] = std::tuple{*operands[0], *operands[1], *operands[2]};
  const Integer128 most = head_size * magnitude(q) * magnitude(k);
  const std::optional<Attributes> exponents =
      exponent_attributes(lowering, node, q.scale() * k.scale() * factor, 2 * most);
  if (!exponents) return;
  for (const NodeId quantizer : lowering.quantizers_of(node)) {
    const std::optional<IntegerFormat> format = lowering.format_of(quantizer);
    if (!format) continue;
    const std::vector<double> ratio{v.scale() / format->scale};
    const numerics::ScaleMultipliers multiplier =
        numerics::multipliers_of(ratio, numerics::kMultiplierBits);
    if (std::abs(multiplier.shift) > 40) {
      lowering.refuse(quantizer, fmt::format("its scale {} is too far from that of the values, {}",
                                             format->scale, v.scale()));
      continue;
    }
    NodeSpec spec{.name = graph.name(quantizer),
                  .op = "integer_attention",
                  .inputs = {q.value, k.value, v.value},
                  .attributes = ops::to_attributes(format->range, {format->scale})};
    for (std::size_t i = 3; i < std::min<std::size_t>(5, graph.inputs(node).size()); ++i)
      spec.inputs.push_back(lowering.plain_operand(node, i));
    spec.attributes.insert(exponents->begin(), exponents->end());
    spec.attributes["heads"] = heads;
    if (attributes.integer("kv_heads") != 0)
      spec.attributes["kv_heads"] = attributes.integer("kv_heads");
    if (attributes.flag("causal")) spec.attributes["causal"] = true;
    spec.attributes["multiplier"] = multiplier.multipliers[0];
    spec.attributes["shift"] = std::int64_t{multiplier.shift};
    lowering.set({quantizer, 0},
                 IntegerLowering::in_format(lowering.add(std::move(spec)), *format));
  }
}

const Register registration{IntegerRule{"attention", lower}};

}  // namespace
}  // namespace lathe::compress::attention_rule
