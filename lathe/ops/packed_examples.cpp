#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/sequence_offsets.h"

// packed_examples(examples[S], offsets[S+1]): for each token of a packed batch, the dataset index
// of the example it belongs to. The number of tokens cannot be read off the operands' types, so the
// result type is written.
namespace lathe::ops::packed_examples {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_integer("packed_examples", "examples", call.input(0));
  require_offsets(call.input(1));
  require_vector("packed_examples", "examples", call.input(0), num_sequences(call.input(1)));
  const Type& type = declared_type("packed_examples", call);
  require_integer("packed_examples", "results", type);
  require_rank("packed_examples", "results", type, 1);
  return {type};
}

void reference(const KernelCall& call) {
  const std::vector<double> examples = read_elements(call.input(0));
  const std::vector<std::int64_t> offsets =
      read_offsets(call.input(1), call.outputs[0].num_elements());
  std::vector<double> values;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    values.insert(values.end(), static_cast<std::size_t>(offsets[s + 1] - offsets[s]), examples[s]);
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "packed_examples",
    .summary = "the example that each token of a packed batch belongs to",
    .operands = {{.name = "examples"}, {.name = "offsets"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"packed_examples(i32[S], i32[S+1]) : i32[T]"},
}};

}  // namespace
}  // namespace lathe::ops::packed_examples
