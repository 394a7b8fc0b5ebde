#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// squared_error(prediction, target), of one shape: two numbers, the sum of (prediction - target)^2
// and the number of elements; the mean squared error is their quotient.
namespace lathe::ops::squared_error {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("squared_error", call, 0);
  const Type& prediction = call.input(0);
  const Type& target = call.input(1);
  require_same_dtype("compare", prediction, target);
  if (prediction.shape != target.shape)
    fail("squared_error: prediction {} and target {} differ in shape", to_text(prediction),
         to_text(target));
  // Sums over many elements need more than half precision.
  const Type scalar{.dtype = prediction.dtype == DType::F64 ? DType::F64 : DType::F32, .shape = {}};
  return {scalar, scalar};
}

void reference(const KernelCall& call) {
  const std::vector<double> prediction = read_elements(call.input(0));
  const std::vector<double> target = read_elements(call.input(1));
  double sum = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const double difference = prediction[i] - target[i];
    sum += difference * difference;
  }
  const auto count = static_cast<double>(target.size());
  write_elements(call.outputs[0], std::span(&sum, 1));
  write_elements(call.outputs[1], std::span(&count, 1));
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  if (gradients[0].is_none()) return no_gradients(graph, node);
  const Value dprediction = derive(graph, node, "gradient_prediction", "squared_error_gradient",
                                   {gradients[0], graph.input(node, 0), graph.input(node, 1)});
  return {dprediction, derive(graph, node, "gradient_target", "neg", {dprediction})};
}

const Register registration{Op{
    .name = "squared_error",
    .summary = "the summed squared difference to a target, and how many elements there are",
    .operands = {{.name = "prediction"}, {.name = "target"}},
    .num_results = 2,
    .infer = infer,
    // Difference, square and sum.
    .flops = [](const OpCall& call) { return Size(3) * call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"squared_error(f32[B,1], f32[B,1])", "squared_error(f32[T,4], f32[T,4])"},
}};

}  // namespace
}  // namespace lathe::ops::squared_error
