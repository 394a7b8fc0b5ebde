#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/sequence_offsets.h"

// packed_shares(offsets[S+1]): for each token of a packed batch, one over the number of tokens of
// its sequence: sums over tokens times their shares are sums over sequences of means. The number of
// tokens cannot be read off the operand's type, so the result type is written.
namespace lathe::ops::packed_shares {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_offsets(call.input(0));
  const Type& type = declared_type("packed_shares", call);
  if (!is_floating(type.dtype))
    fail("packed_shares: results {}: expected floating point", to_text(type));
  require_rank("packed_shares", "results", type, 1);
  return {type};
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> offsets =
      read_offsets(call.input(0), call.outputs[0].num_elements());
  std::vector<double> values;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t length = offsets[s + 1] - offsets[s];
    values.insert(values.end(), static_cast<std::size_t>(length),
                  1.0 / static_cast<double>(length));
  }
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "packed_shares",
    .summary = "the share of its sequence that each token of a packed batch is: 1 / its length",
    .operands = {{.name = "offsets"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"packed_shares(i32[S+1]) : f32[T]"},
}};

}  // namespace
}  // namespace lathe::ops::packed_shares
