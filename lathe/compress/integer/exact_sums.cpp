#include "lathe/compress/integer/exact_sums.h"

#include <algorithm>
#include <cmath>

#include "lathe/ops/elements.h"
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

// y = (sum - mean) * factor + bias for each output, where only a batch norm reads the sums.
bool fold_batch_norm(IntegerLowering& lowering, NodeId node, ExactSums& sums) {
  const Graph& graph = lowering.graph();
  const std::vector<Use>& uses = graph.uses(node);
  if (uses.size() != 1 || uses[0].kind != Use::Kind::Operand || uses[0].operand != 0 ||
      !graph.is(uses[0].user, "batch_norm"))
    return true;
  const NodeId norm = uses[0].user;
  std::vector<std::vector<double>> given;
  for (std::size_t i = 1; i < 5; ++i) {
    const Value value = graph.input(norm, i);
    if (!lowering.is_fixed(value)) {
      lowering.refuse(norm, fmt::format("{} is no state", graph.name(value)));
      return false;
    }
    const Tensor tensor = lowering.parameter(value);
    given.push_back(ops::read_elements(tensor));
  }
  const auto outputs = static_cast<std::size_t>(sums.weight_dims.front());
  const std::size_t width = sums.weight.size() / outputs;
  if (sums.scales.size() == 1) sums.scales.resize(outputs, sums.scales.front());
  sums.real_bias.resize(outputs, 0.0);
  if (sums.bias_name.empty()) sums.bias_name = graph.name(graph.input(norm, 2).node);
  for (std::size_t j = 0; j < outputs; ++j) {
    const double factor = given[0][j] / std::sqrt(given[3][j] + graph.attribute(norm).real("eps"));
    sums.real_bias[j] = (sums.real_bias[j] - given[2][j]) * factor + given[1][j];
    // A requant has no sign: the weights take it. Without a factor nothing is summed.
    const std::int64_t sign = factor < 0 ? -1 : factor > 0 ? 1 : 0;
    for (std::size_t i = 0; i < width; ++i) sums.weight[j * width + i] *= sign;
    if (sign != 0) sums.scales[j] *= std::fabs(factor);
  }
  sums.result = {norm, 0};
  return true;
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
                 .real_bias = {},
                 .result = {node, 0}};
  for (double& scale : sums.scales) scale *= input->scale();
  if (graph.inputs(node).size() > 2 && !graph.input(node, 2).is_none()) {
    if (!lowering.is_parameter(graph.input(node, 2))) {
      lowering.refuse(node, "its bias is no parameter");
      return std::nullopt;
    }
    sums.bias_name = lowering.parameter_name(graph.input(node, 2));
    sums.real_bias = ops::read_elements(lowering.parameter(graph.input(node, 2)));
  }
  if (!fold_batch_norm(lowering, node, sums)) return std::nullopt;
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
  lowering.set(sums.result, {.value = lowering.add(std::move(spec)),
                             .scales = sums.scales,
                             .channel_axis = sums.scales.size() > 1 ? channel_axis : -1,
                             .low = range.low,
                             .high = range.high,
                             .is_sum = true});
}

}  // namespace lathe::compress
