#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/last_positions.h"
#include "lathe/ops/operand_checks.h"

// last_token_gradient(dy[B,..], mask[B,L]): zeros of the shape written, [B,L,..], with row b of dy
// at the last token of row b.
namespace lathe::ops::last_token_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& mask = call.input(1);
  const Type& result = declared_type("last_token_gradient", call);
  require_rank_at_least("last_token_gradient", "dy", dy, 1);
  require_rank("last_token_gradient", "mask", mask, 2);
  Shape expected = dy.shape;
  expected.insert(expected.begin() + 1, mask.shape[1]);
  if (result.shape != expected || mask.shape[0] != dy.shape[0])
    fail("last_token_gradient: dy {} and mask {} do not fit {}", to_text(dy), to_text(mask),
         to_text(result));
  return {{.dtype = dy.dtype, .shape = result.shape}};
}

void reference(const KernelCall& call) {
  Tensor& x = call.outputs[0];
  const std::vector<std::int64_t> last = last_positions(call.input(1));
  const std::vector<double> dy = read_elements(call.input(0));
  const auto rows = static_cast<std::size_t>(x.dim(0)), length = static_cast<std::size_t>(x.dim(1));
  const std::size_t width = rows == 0 ? 0 : dy.size() / rows;
  std::vector<double> values(static_cast<std::size_t>(x.num_elements()), 0.0);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < width; ++i)
      values[(row * length + static_cast<std::size_t>(last[row])) * width + i] =
          dy[row * width + i];
  write_elements(x, values);
}

const Register registration{Op{
    .name = "last_token_gradient",
    .summary = "the gradient of last_token: zeros, with dy at the last real token of each row",
    .operands = {{.name = "dy"}, {.name = "mask"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"last_token_gradient(f32[B,4], i32[B,L]) : f32[B,L,4]"},
}};

}  // namespace
}  // namespace lathe::ops::last_token_gradient
