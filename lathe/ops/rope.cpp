#include "lathe/core/op.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/rope_turn.h"

// rope(x[..,heads*d], positions[..]) {heads, theta, interleaved, factor, ...}: rotary position
// embedding. In each head, pair i of d/2 is turned by the angle position * theta^(-2i/d), that
// frequency scaled as rope_scaling.h says:
//   (a, b) -> (a cos - b sin, a sin + b cos).
// A pair is elements i and i + d/2 (as Hugging Face stores Llama), or 2i and 2i + 1 if interleaved.
namespace lathe::ops::rope {
namespace {

// Two products and a sum for each element.
Size flops(const OpCall& call) {
  return Size(3) * call.input(0).num_elements();
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "rope_gradient", {gradients[0], graph.input(node, 1)},
                 graph.attributes(node)),
          kNone};
}

const Register registration{Op{
    .name = "rope",
    .summary =
        "rotary position embedding: turn pairs of features by angles that grow with position",
    .operands = {{.name = "x"}, {.name = "positions"}},
    .attributes = rope_attributes(),
    .infer = [](const OpCall& call) { return infer_rope("rope", call); },
    .flops = flops,
    .reference = [](const KernelCall& call) { turn_pairs(call, 1.0); },
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"rope(f32[T,8], i32[T]) {heads=2}",
                 "rope(f32[B,L,4], i64[B,L]) {heads=1, theta=500000.0, interleaved=true}",
                 "rope(f32[T,8], i32[T]) {heads=1, factor=4.0}",
                 "rope(f32[T,16], i32[T]) {heads=1, theta=100.0, factor=8.0, "
                 "original_positions=16, low_turns=1.0, high_turns=2.0}"},
}};

}  // namespace
}  // namespace lathe::ops::rope
