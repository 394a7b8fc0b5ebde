#include <algorithm>
#include <cmath>

#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/numerics/integer/scale_multiplier.h"
#include "lathe/ops/integer/integer_result.h"

// docs/integer.md, "Layer norm".
namespace lathe::compress::layer_norm_rule {
namespace {

using numerics::Integer128;

constexpr int kFraction = 12;     // of a normalized element, or the result's width where larger
constexpr int kRootFraction = 4;  // of the square root, or less where 63 bits would not do

// Weight and bias behind the division, so that (z * weight + bias) / 2^shift is in the result's
// scale.
struct Affine {
  std::vector<std::int64_t> weight, bias;
  int shift = 0;
};
Affine affine(const Tensor& weight, const Tensor& bias, double scale, int fraction) {
  double largest = 0;
  for (const float w : weight.data<float>()) largest = std::max<double>(largest, std::fabs(w));
  const double ratio = largest == 0 ? 1.0 : largest / std::ldexp(scale, fraction);
  int exponent = 0;
  std::frexp(ratio, &exponent);
  Affine result{.weight = {}, .bias = {}, .shift = numerics::kMultiplierBits - exponent};
  for (const float w : weight.data<float>())
    result.weight.push_back(
        std::llrint(std::ldexp(static_cast<double>(w) / scale, result.shift - fraction)));
  for (const float b : bias.data<float>())
    result.bias.push_back(std::llrint(std::ldexp(static_cast<double>(b) / scale, result.shift)));
  return result;
}

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const x = lowering.rounded_operand(node, 0);
  if (x == nullptr) return;
  for (const std::size_t i : {1, 2})
    if (!lowering.is_parameter(graph.input(node, i)))
      return lowering.refuse(node, "its weight or bias is no parameter");
  const Tensor weight = lowering.parameter(graph.input(node, 1));
  const Tensor bias = lowering.parameter(graph.input(node, 2));
  const std::int64_t size = weight.num_elements();
  const double steps = static_cast<double>(size) / x->scale();
  const double epsilon = std::nearbyint(graph.attribute(node).real("eps") * steps * steps);
  // size * sum of squares - square of sum is at most (size * (high - low) / 2)^2.
  const Integer128 half = size * ((x->high - x->low + 1) / 2);
  if (!(epsilon < 0x1p61) || half > Integer128{1} << 31)
    return lowering.refuse(node, "its variance needs more than 63 bits");
  const int bits = numerics::signed_bits(0, half * half + static_cast<Integer128>(epsilon));
  if (bits > 63) return lowering.refuse(node, "its variance needs more than 63 bits");
  const int root_fraction = std::min(kRootFraction, (64 - bits) / 2);
  for (const NodeId quantizer : lowering.quantizers_of(node)) {
    const std::optional<IntegerFormat> format = lowering.format_of(quantizer);
    if (!format) continue;
    const int fraction = std::max(kFraction, format->range.width);
    const Affine behind = affine(weight, bias, format->scale, fraction);
    if (behind.shift < 0 || behind.shift > 62) {
      lowering.refuse(
          quantizer, fmt::format("its scale {} is too far from that of the weight", format->scale));
      continue;
    }
    Attributes attributes = ops::to_attributes(format->range, {format->scale});
    attributes["epsilon"] = static_cast<std::int64_t>(epsilon);
    attributes["root_fraction"] = std::int64_t{root_fraction};
    attributes["fraction"] = std::int64_t{fraction};
    attributes["shift"] = std::int64_t{behind.shift};
    const Value y =
        lowering.add({.name = graph.name(quantizer),
                      .op = "integer_layer_norm",
                      .inputs = {x->value,
                                 lowering.add_state(lowering.parameter_name(graph.input(node, 1)),
                                                    behind.weight, {size}, "codes"),
                                 lowering.add_state(lowering.parameter_name(graph.input(node, 2)),
                                                    behind.bias, {size}, "codes")},
                      .attributes = std::move(attributes)});
    lowering.set({quantizer, 0}, IntegerLowering::in_format(y, *format));
  }
}

const Register registration{IntegerRule{"layer_norm", lower}};

}  // namespace
}  // namespace lathe::compress::layer_norm_rule
