#include "lathe/core/op.h"
#include "lathe/ops/rope_turn.h"

// rope_gradient(dy[..,heads*d], positions[..]), attributes as rope: turning back by the same
// angles, because the transpose of a rotation is its inverse.
namespace lathe::ops::rope_gradient {
namespace {

const Register registration{Op{
    .name = "rope_gradient",
    .summary = "the gradient of rope: turn pairs of features back",
    .operands = {{.name = "dy"}, {.name = "positions"}},
    .attributes = rope_attributes(),
    .infer = [](const OpCall& call) { return infer_rope("rope_gradient", call); },
    .flops = [](const OpCall& call) { return Size(3) * call.input(0).num_elements(); },
    .reference = [](const KernelCall& call) { turn_pairs(call, -1.0); },
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"rope_gradient(f32[T,8], i32[T]) {heads=2}",
                 "rope_gradient(f32[B,L,4], i64[B,L]) {heads=1, interleaved=true}"},
}};

}  // namespace
}  // namespace lathe::ops::rope_gradient
