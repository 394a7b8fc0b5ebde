#include "lathe/core/op.h"
#include "lathe/ops/elements.h"

// full_like(x) {value}: an array of the shape of x with `value` everywhere. Its dtype is that of x
// unless another is written on the node.
namespace lathe::ops::full_like {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const DType dtype = call.declared().empty() ? x.dtype : call.declared()[0].dtype;
  return {{.dtype = dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  const auto count = static_cast<std::size_t>(call.outputs[0].num_elements());
  write_elements(call.outputs[0], std::vector<double>(count, call.attributes.real("value")));
}

const Register registration{Op{
    .name = "full_like",
    .summary = "an array of the shape of x filled with one value",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "value", .default_value = 1.0, .summary = "every element"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"full_like(f32[T,4])", "full_like(i64[B,L]) {value=0.5} : f32[B,L]",
                 "full_like(f32[T,4]) {value=3.0} : i32[T,4]"},
}};

}  // namespace
}  // namespace lathe::ops::full_like
