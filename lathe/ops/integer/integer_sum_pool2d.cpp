#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/pooling_windows.h"

// integer_sum_pool2d(x[N,C,H,W]) {kernel, strides, pads, width, scale}: the exact sum of each
// window. A mean is this sum with a scale divided by the window's size.
namespace lathe::ops::integer_sum_pool2d {
namespace {

constexpr const char* kName = "integer_sum_pool2d";

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_integer(kName, "x", x);
  require_rank(kName, "x", x, 4);
  Type result = slide_window(kName, x, x.axis(1), pooling_window(kName, call.attributes()));
  result.dtype = storage_of(integer_range(call.attributes()));
  return {result};
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> x = read_integers(call.input(0));
  std::vector<std::int64_t> y(static_cast<std::size_t>(call.outputs[0].num_elements()), 0);
  for_each_window(kName, call.input(0), call.outputs[0], call.attributes,
                  [&](std::size_t output, std::span<const std::size_t> inputs) {
                    for (const std::size_t input : inputs) y[output] += x[input];
                  });
  write_integers(call.outputs[0], y);
}

const Register registration{Op{
    .name = kName,
    .summary = "the exact sum of each window of integer images",
    .operands = {{.name = "x"}},
    .attributes = with_integer_result(pooling_attributes()),
    .infer = infer,
    .flops =
        [](const OpCall& call) {
          const Window window = pooling_window(kName, call.attributes());
          return infer(call)[0].num_elements() * Size(window.kernel[0] * window.kernel[1]);
        },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"integer_sum_pool2d(i8[B,2,6,6]) {kernel=[2,2], width=10}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_sum_pool2d
