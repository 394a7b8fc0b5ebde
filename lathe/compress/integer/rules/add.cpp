#include <cmath>

#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/numerics/integer/scale_multiplier.h"
#include "lathe/ops/integer/integer_result.h"

// a * s + b * t = (a * m + b * n) / 2^shift: exact where s / t is a power of two.
namespace lathe::compress::add_rule {
namespace {

using numerics::Integer128;

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const a = lowering.operand(node, 0);
  const IntegerValue* const b = a == nullptr ? nullptr : lowering.operand(node, 1);
  if (b == nullptr) return;
  if (a->scales.size() > 1 || b->scales.size() > 1)
    return lowering.refuse(node, "an operand has a scale for each channel, and no quantizer");
  const std::vector<double> scales{a->scale(), b->scale()};
  const numerics::ScaleMultipliers multipliers =
      numerics::multipliers_of(scales, numerics::kMultiplierBits);
  const std::int64_t m = multipliers.multipliers[0], n = multipliers.multipliers[1];
  const Integer128 low = a->low * m + b->low * n, high = a->high * m + b->high * n;
  const int width = numerics::signed_bits(low, high);
  if (width > 64)
    return lowering.refuse(node, fmt::format("a sum needs {} bits, more than 64", width));
  const double scale = std::ldexp(1.0, -multipliers.shift);
  Attributes attributes = ops::to_attributes({.width = width}, {scale});
  attributes["multiplier_a"] = m;
  attributes["multiplier_b"] = n;
  lowering.set({node, 0}, {.value = lowering.add({.name = graph.name(node),
                                                  .op = "integer_add",
                                                  .inputs = {a->value, b->value},
                                                  .attributes = std::move(attributes)}),
                           .scales = {scale},
                           .channel_axis = -1,
                           .low = low,
                           .high = high,
                           .is_sum = true});
}

const Register registration{IntegerRule{"add", lower}};

}  // namespace
}  // namespace lathe::compress::add_rule
