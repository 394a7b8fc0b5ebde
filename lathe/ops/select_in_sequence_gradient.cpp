#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/sequence_offsets.h"

// select_in_sequence_gradient(dy[S,..], offsets[S+1]) {index}: zeros of the shape written, [T,..],
// with row s of dy at one token of sequence s.
namespace lathe::ops::select_in_sequence_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& result = declared_type("select_in_sequence_gradient", call);
  require_offsets(call.input(1));
  require_rank_at_least("select_in_sequence_gradient", "dy", dy, 1);
  Shape expected = result.shape;
  if (!expected.empty()) expected[0] = num_sequences(call.input(1));
  if (dy.shape != expected)
    fail("select_in_sequence_gradient: dy {} does not fit {}: expected shape {}", to_text(dy),
         to_text(result), to_text(expected));
  return {{.dtype = dy.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  Tensor& x = call.outputs[0];
  const std::vector<std::int64_t> offsets = read_offsets(call.input(1), x.dim(0));
  const std::int64_t index = call.attributes.integer("index");
  const std::vector<double> dy = read_elements(call.input(0));
  const auto width = x.dim(0) == 0 ? 0 : static_cast<std::size_t>(x.num_elements() / x.dim(0));
  std::vector<double> values(static_cast<std::size_t>(x.num_elements()), 0.0);
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t token = (index < 0 ? offsets[s + 1] : offsets[s]) + index;
    if (token < offsets[s] || token >= offsets[s + 1])
      fail("sequence {} has {} tokens and no index {}", s, offsets[s + 1] - offsets[s], index);
    for (std::size_t i = 0; i < width; ++i)
      values[static_cast<std::size_t>(token) * width + i] = dy[s * width + i];
  }
  write_elements(x, values);
}

const Register registration{Op{
    .name = "select_in_sequence_gradient",
    .summary = "the gradient of select_in_sequence: zeros, with dy at one token of each sequence",
    .operands = {{.name = "dy"}, {.name = "offsets"}},
    .attributes = {{.name = "index",
                    .default_value = 0,
                    .summary = "which token; negative ones count from the end of each sequence"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"select_in_sequence_gradient(f32[S,4], i32[S+1]) : f32[T,4]",
                 "select_in_sequence_gradient(f32[S], i32[S+1]) {index=-1} : f32[T]"},
}};

}  // namespace
}  // namespace lathe::ops::select_in_sequence_gradient
