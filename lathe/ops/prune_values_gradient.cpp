#include "lathe/ops/operand_checks.h"
#include "lathe/ops/prune_row.h"

// prune_values_gradient(dy, x) {sparsity}: dy where prune_values keeps x, 0 elsewhere.
namespace lathe::ops::prune_values_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  check_pruned_rows("prune_values_gradient", call, 1);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_same_dtype("compare", dy, x);
  if (dy.shape != x.shape)
    fail("prune_values_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

const Register registration{Op{
    .name = "prune_values_gradient",
    .summary = "dy where the row's value is kept, else 0",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .attributes = {sparsity_attribute()},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .reference =
        [](const KernelCall& call) { run_pruned_rows(call, call.input(1), call.input(0)); },
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"prune_values_gradient(f32[T,8], f32[T,8]) {sparsity=0.5}"},
}};

}  // namespace
}  // namespace lathe::ops::prune_values_gradient
