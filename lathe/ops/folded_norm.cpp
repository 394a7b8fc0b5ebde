#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// What a batch norm behind a convolution or a linear layer makes of that layer's parameters. With
// f = weight / sqrt(variance + eps) for each output,
//   folded_weight(w[O,..], weight[O], variance[O]) {eps} = w * f,
//   folded_bias(weight[O], shift[O], mean[O], variance[O], bias[O]) {eps} = (bias - mean) * f +
//   shift,
// without a bias as with one of zeros.
namespace lathe::ops::folded_norm {
namespace {

std::vector<double> factors(const KernelCall& call, std::size_t weight, std::size_t variance) {
  std::vector<double> result = read_elements(call.input(weight));
  const std::vector<double> variances = read_elements(call.input(variance));
  const double eps = call.attributes.real("eps");
  for (std::size_t i = 0; i < result.size(); ++i) result[i] /= std::sqrt(variances[i] + eps);
  return result;
}

std::vector<Type> infer_weight(const OpCall& call) {
  require_floating("folded_weight", call, 0);
  const Type& w = call.input(0);
  require_rank_at_least("folded_weight", "w", w, 1);
  require_vector("folded_weight", "weight", call.input(1), w.axis(0));
  require_vector("folded_weight", "variance", call.input(2), w.axis(0));
  return {{.dtype = w.dtype, .shape = w.shape}};
}

void weight_reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const std::vector<double> factor = factors(call, 1, 2);
  const std::size_t row = values.size() / factor.size();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factor[i / row];
  write_elements(call.outputs[0], values);
}

std::vector<Type> infer_bias(const OpCall& call) {
  require_floating("folded_bias", call, 0);
  const Type& weight = call.input(0);
  require_rank("folded_bias", "weight", weight, 1);
  const char* const names[] = {"shift", "mean", "variance", "bias"};
  for (std::size_t i = 0; i < 4; ++i)
    if (call.has(i + 1)) require_vector("folded_bias", names[i], call.input(i + 1), weight.axis(0));
  return {{.dtype = weight.dtype, .shape = weight.shape}};
}

void bias_reference(const KernelCall& call) {
  std::vector<double> values = factors(call, 0, 3);
  const std::vector<double> shift = read_elements(call.input(1));
  const std::vector<double> mean = read_elements(call.input(2));
  const std::vector<double> bias =
      call.has(4) ? read_elements(call.input(4)) : std::vector<double>(values.size(), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (bias[i] - mean[i]) * values[i] + shift[i];
  write_elements(call.outputs[0], values);
}

const AttributeSpec kEps{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"};

const Register folded_weight{Op{
    .name = "folded_weight",
    .summary = "a layer's weight with the scale of the batch norm behind it",
    .operands = {{.name = "w"},
                 {.name = "weight"},
                 {.name = "variance", .role = OperandRole::Statistic}},
    .attributes = {kEps},
    .infer = infer_weight,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = weight_reference,
    .is_differentiable = false,
    .examples = {"folded_weight(f32[4,3,2,2], f32[4], f32[4])"},
}};

const Register folded_bias{Op{
    .name = "folded_bias",
    .summary = "a layer's bias with the scale and shift of the batch norm behind it",
    .operands = {{.name = "weight"},
                 {.name = "shift"},
                 {.name = "mean", .role = OperandRole::Statistic},
                 {.name = "variance", .role = OperandRole::Statistic},
                 {.name = "bias", .optional = true}},
    .attributes = {kEps},
    .infer = infer_bias,
    .flops = [](const OpCall& call) { return Size(3) * call.input(0).num_elements(); },
    .reference = bias_reference,
    .is_differentiable = false,
    .examples = {"folded_bias(f32[4], f32[4], f32[4], f32[4])",
                 "folded_bias(f32[4], f32[4], f32[4], f32[4], f32[4])"},
}};

}  // namespace
}  // namespace lathe::ops::folded_norm
