#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// where(condition, a, b): the element of a where the condition is true, of b elsewhere; all three
// are broadcast to a common shape.
namespace lathe::ops::where {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& condition = call.input(0);
  const Type& a = call.input(1);
  if (condition.dtype != DType::Bool)
    fail("where: condition {} is no array of truth values", to_text(condition));
  require_same_dtype("choose between", a, call.input(2));
  const Type both{.dtype = a.dtype, .shape = broadcast_shapes("choose between", a, call.input(2))};
  return {{.dtype = a.dtype, .shape = broadcast_shapes("choose between", condition, both)}};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  const auto condition = broadcast_indices(call.input(0).dims(), y.dims());
  const auto a_index = broadcast_indices(call.input(1).dims(), y.dims());
  const auto b_index = broadcast_indices(call.input(2).dims(), y.dims());
  // Both copied in full, so that the bits of either stay as they are.
  Tensor chosen(y.dtype(), y.dims());
  copy_elements(call.input(1), a_index, y);
  copy_elements(call.input(2), b_index, chosen);
  const std::int64_t size = size_of(y.dtype());
  std::byte* const target = y.mutable_bytes();
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (call.input(0).at(condition[i]) == 0)
      std::copy_n(chosen.bytes() + static_cast<std::int64_t>(i) * size, size,
                  target + static_cast<std::int64_t>(i) * size);
}

// Each element's gradient goes to where it came from.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value condition = graph.input(node, 0);
  const Value zero =
      derive(graph, node, "zero", "constant", {}, {{"values", std::vector<double>{0.0}}},
             {{.dtype = graph.type(gradients[0]).dtype, .shape = {}}});
  const Value a = derive(graph, node, "gradient_a", "where", {condition, gradients[0], zero});
  const Value b = derive(graph, node, "gradient_b", "where", {condition, zero, gradients[0]});
  return {kNone, sum_to_operand(graph, node, 1, a), sum_to_operand(graph, node, 2, b)};
}

const Register registration{Op{
    .name = "where",
    .summary = "a where the condition is true, b elsewhere, with broadcasting",
    .operands = {{.name = "condition"}, {.name = "a"}, {.name = "b"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return infer(call)[0].num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_elementwise = true,
    .examples = {"where(bool[T,4], f32[T,4], f32[T,4])", "where(bool[B,1,L], f32[B,2,L], f32[])",
                 "where(bool[3], i64[2,1], i64[3])"},
}};

}  // namespace
}  // namespace lathe::ops::where
