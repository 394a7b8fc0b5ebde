#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// reshape(x): the same elements in row-major order under the shape written on the node.
namespace lathe::ops::reshape {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& result = declared_type("reshape", call);
  if (x.num_elements() != result.num_elements())
    fail("cannot reshape {} to {}: {} and {} elements differ", to_text(x), to_text(result),
         x.num_elements().text(), result.num_elements().text());
  return {{.dtype = x.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  std::memcpy(y.mutable_bytes(), call.input(0).bytes(), static_cast<std::size_t>(y.num_bytes()));
}

// A reshape that keeps [B,L] in front, or makes them one axis, only rearranges inside tokens, and
// stays one with [T] in front. Everything else moves elements between tokens.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Type& x = graph.type(graph.input(node, 0));
  const Type& written = graph.types(node)[0];
  const Type type = packed_type(graph, node, written, sequences);
  if (x.num_elements() != type.num_elements())
    refuse_to_pack(graph, node, fmt::format("{} does not keep tokens apart", to_text(written)));
  return repeat_packed(graph, node, {}, {type});
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "reshape", {gradients[0]}, {},
                 {operand_type(graph, node, 0)})};
}

const Register registration{Op{
    .name = "reshape",
    .summary = "the same elements under the shape written",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .is_alias = true,
    .pack = pack,
    .examples = {"reshape(f32[B,L,8]) : f32[B,L,2,4]", "reshape(f32[B,L,8]) : f32[B*L,8]",
                 "reshape(i64[6]) : i64[3,2]"},
}};

}  // namespace
}  // namespace lathe::ops::reshape
