#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// binary_cross_entropy(logits, targets), of one shape, targets from 0 to 1: two numbers,
//   sum   = sum over elements of log(1 + exp(x)) - x y, which is the cross-entropy of sigmoid(x),
//   count = number of elements,
// as PyTorch's BCEWithLogitsLoss; the mean is their quotient.
namespace lathe::ops::binary_cross_entropy {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("binary_cross_entropy", call, 0);
  const Type& logits = call.input(0);
  const Type& targets = call.input(1);
  require_same_dtype("compare", logits, targets);
  if (logits.shape != targets.shape)
    fail("binary_cross_entropy: logits {} and targets {} differ in shape", to_text(logits),
         to_text(targets));
  // Sums over many elements need more than half precision.
  const Type scalar{.dtype = logits.dtype == DType::F64 ? DType::F64 : DType::F32, .shape = {}};
  return {scalar, scalar};
}

void reference(const KernelCall& call) {
  const std::vector<double> logits = read_elements(call.input(0));
  const std::vector<double> targets = read_elements(call.input(1));
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double x = logits[i];
    // The exponential of a negative number alone: nothing overflows.
    sum += std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - x * targets[i];
  }
  const auto count = static_cast<double>(logits.size());
  write_elements(call.outputs[0], std::span(&sum, 1));
  write_elements(call.outputs[1], std::span(&count, 1));
}

// Targets are data: nothing asks for their gradient, and the loss is linear in them.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  if (gradients[0].is_none()) return no_gradients(graph, node);
  const Value negative = derive(graph, node, "gradient_targets/negative", "neg",
                                {derive(graph, node, "gradient_targets/logits", "mul",
                                        {graph.input(node, 0), gradients[0]})});
  return {derive(graph, node, "gradient_logits", "binary_cross_entropy_gradient",
                 {gradients[0], graph.input(node, 0), graph.input(node, 1)}),
          negative};
}

const Register registration{Op{
    .name = "binary_cross_entropy",
    .summary = "the summed cross-entropy of sigmoids with targets, and how many elements there are",
    .operands = {{.name = "logits"}, {.name = "targets"}},
    .num_results = 2,
    .infer = infer,
    // Exponential, logarithm, maximum, product, difference and sum.
    .flops = [](const OpCall& call) { return Size(6) * call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"binary_cross_entropy(f32[B,3], f32[B,3])",
                 "binary_cross_entropy(f32[T,1], f32[T,1])"},
}};

}  // namespace
}  // namespace lathe::ops::binary_cross_entropy
