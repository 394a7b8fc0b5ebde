#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// broadcast_to(x): x stretched to the shape written on the node, as an operand of an element-wise
// op would be.
namespace lathe::ops::broadcast_to {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const Type result{.dtype = x.dtype, .shape = declared_type("broadcast_to", call).shape};
  if (x.rank() > result.rank() || broadcast_shapes("broadcast", x, result) != result.shape)
    fail("cannot broadcast {} to {}", to_text(x), to_text(result.shape));
  return {result};
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  copy_elements(x, broadcast_indices(x.dims(), call.outputs[0].dims()), call.outputs[0]);
}

// Stretching tokens in their trailing axes, or something without rows and positions to tokens. What
// has both axes in front without being tokens ([1,1,n], [B,1,n]) keeps its rank and then no longer
// fits the packed shape; the shape rule says so.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  return repeat_packed(graph, node, {},
                       {packed_type(graph, node, graph.types(node)[0], sequences)});
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {sum_to_operand(graph, node, 0, gradients[0])};
}

const Register registration{Op{
    .name = "broadcast_to",
    .summary = "x stretched to the shape written",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = pack,
    .examples = {"broadcast_to(f32[4]) : f32[T,4]", "broadcast_to(f32[B,1,4]) : f32[B,L,4]",
                 "broadcast_to(f32[]) : f32[2,3]"},
}};

}  // namespace
}  // namespace lathe::ops::broadcast_to
