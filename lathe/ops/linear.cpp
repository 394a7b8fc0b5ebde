#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// linear(x[..,k], weight[n,k], bias[n]): y[..,j] = sum over i of x[..,i] * weight[j,i], plus
// bias[j]. The weight is stored as PyTorch and Hugging Face store it, one row for each output
// feature.
namespace lathe::ops::linear {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("linear", call, 0);
  const Type& x = call.input(0);
  const Type& weight = call.input(1);
  require_rank_at_least("linear", "x", x, 1);
  require_rank("linear", "weight", weight, 2);
  if (x.axis(-1) != weight.axis(1))
    fail("cannot multiply {} by weight {}: inner sizes {} and {} differ", to_text(x),
         to_text(weight), x.axis(-1).text(), weight.axis(1).text());
  if (call.has(2)) require_vector("linear", "bias", call.input(2), weight.axis(0));
  Type result{.dtype = x.dtype, .shape = x.shape};
  result.shape.back() = weight.axis(0);
  return {result};
}

Size flops(const OpCall& call) {
  return Size(2) * call.input(0).num_elements() * call.input(1).axis(0);
}

void reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  const std::vector<double> weight = read_elements(call.input(1));
  const std::vector<double> bias =
      call.has(2) ? read_elements(call.input(2)) : std::vector<double>{};
  const auto n = static_cast<std::size_t>(call.input(1).dim(0));
  const auto k = static_cast<std::size_t>(call.input(1).dim(1));
  std::vector<double> y(static_cast<std::size_t>(call.outputs[0].num_elements()));
  for (std::size_t row = 0; n > 0 && row < y.size() / n; ++row) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0.0 : bias[j];
      for (std::size_t i = 0; i < k; ++i) sum += x[row * k + i] * weight[j * k + i];
      y[row * n + j] = sum;
    }
  }
  write_elements(call.outputs[0], y);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value dy = gradients[0];
  std::vector<Value> result = no_gradients(graph, node);
  result[0] =
      derive(graph, node, "gradient_x", "linear_input_gradient", {dy, graph.input(node, 1)});
  result[1] =
      derive(graph, node, "gradient_weight", "linear_weight_gradient", {dy, graph.input(node, 0)});
  if (!graph.input(node, 2).is_none())
    result[2] = derive(graph, node, "gradient_bias", "sum_rows", {dy});
  return result;
}

const Register registration{Op{
    .name = "linear",
    .summary = "x times the transposed weight, plus bias",
    .operands = {{.name = "x", .role = OperandRole::Input},
                 {.name = "weight", .role = OperandRole::Weight},
                 {.name = "bias", .optional = true, .role = OperandRole::Bias}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"linear(f32[T,8], f32[16,8], f32[16])", "linear(f32[B,L,4], f32[3,4], none)",
                 "linear(f32[B,4], f32[2,4])"},
}};

}  // namespace
}  // namespace lathe::ops::linear
