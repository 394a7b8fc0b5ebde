#include "lathe/compress/integer/exact_sums.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/role.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::compress {
namespace {

using numerics::Integer128;

// The least and the largest sum that can come out: an input adds most at one end of its range.
struct SumRange {
  Integer128 low = 0, high = 0;
};
SumRange range_of_sums(const ExactSums& sums, const std::vector<std::int64_t>& bias,
                       std::size_t outputs) {
  SumRange range;
  const std::size_t width = sums.weight.size() / outputs;
  for (std::size_t j = 0; j < outputs; ++j) {
    Integer128 low = bias.empty() ? 0 : bias[j], high = low;
    for (std::size_t i = 0; i < width; ++i) {
      const Integer128 a = sums.weight[j * width + i] * sums.input.low;
      const Integer128 b = sums.weight[j * width + i] * sums.input.high;
      low += std::min(a, b);
      high += std::max(a, b);
    }
    range.low = std::min(range.low, low);
    range.high = std::max(range.high, high);
  }
  return range;
}

}  // namespace

std::optional<ExactSums> exact_sums(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const input = lowering.rounded_operand(node, 0);
  if (input == nullptr) return std::nullopt;
  const Value weight = graph.input(node, 1);
  if (!lowering.is_parameter(weight)) {
    lowering.refuse(node, "its weight is no parameter");
    return std::nullopt;
  }
  const std::vector<std::int64_t> dims = graph.type(weight).dims({});
  std::optional<IntegerParameter> integers =
      lowering.integers_of(node, weight, dims.front(), false);
  if (!integers) return std::nullopt;
  ExactSums sums{.input = *input,
                 .weight_name = lowering.parameter_name(weight),
                 .bias_name = {},
                 .weight = std::move(integers->values),
                 .weight_dims = dims,
                 .scales = std::move(integers->scales),
                 .real_bias = {}};
  for (double& scale : sums.scales) scale *= input->scale();
  if (graph.inputs(node).size() <= 2 || graph.input(node, 2).is_none()) return sums;
  if (!lowering.is_parameter(graph.input(node, 2))) {
    lowering.refuse(node, "its bias is no parameter");
    return std::nullopt;
  }
  sums.bias_name = lowering.parameter_name(graph.input(node, 2));
  const Tensor bias = lowering.parameter(graph.input(node, 2));
  for (const float value : bias.data<float>()) sums.real_bias.push_back(value);
  return sums;
}

void add_exact_sums(IntegerLowering& lowering, NodeId node, const std::string& op, ExactSums sums,
                    std::int64_t channel_axis) {
  const Graph& graph = lowering.graph();
  const auto outputs = static_cast<std::size_t>(sums.weight_dims.front());
  std::vector<std::int64_t> bias;
  for (std::size_t j = 0; j < sums.real_bias.size(); ++j) {
    const double steps = std::nearbyint(sums.real_bias[j] / sums.scales[j % sums.scales.size()]);
    if (!(std::fabs(steps) < 0x1p62))
      return lowering.refuse(node, fmt::format("bias {} needs more than 62 bits at its sum's scale",
                                               sums.real_bias[j]));
    bias.push_back(static_cast<std::int64_t>(steps));
  }
  const SumRange range = range_of_sums(sums, bias, outputs);
  const int width = std::max(2, numerics::signed_bits(range.low, range.high));
  if (width > 64)
    return lowering.refuse(node, fmt::format("a sum needs {} bits, more than 64", width));
  NodeSpec spec{.name = graph.name(node),
                .op = op,
                .inputs = {sums.input.value, lowering.add_state(sums.weight_name, sums.weight,
                                                                sums.weight_dims, "codes")},
                .attributes = graph.attributes(node)};
  if (!bias.empty())
    spec.inputs.push_back(
        lowering.add_state(sums.bias_name, bias, {static_cast<std::int64_t>(outputs)}, "codes"));
  for (auto& [name, value] : ops::to_attributes({.width = width}, sums.scales))
    spec.attributes[name] = value;
  lowering.set({node, 0}, {.value = lowering.add(std::move(spec)),
                           .scales = sums.scales,
                           .channel_axis = sums.scales.size() > 1 ? channel_axis : -1,
                           .low = range.low,
                           .high = range.high,
                           .is_sum = true});
}

}  // namespace lathe::compress
