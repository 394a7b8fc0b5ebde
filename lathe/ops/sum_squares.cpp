#include <algorithm>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// sum_squares(x): the sum of x^2 over all elements, in double. Blocks of 4096 elements are summed
// first and then added in order, so that any number of threads gives the same bits.
namespace lathe::ops::sum_squares {
namespace {

constexpr std::size_t kBlock = 4096;

std::vector<Type> infer(const OpCall& call) {
  require_floating("sum_squares", call, 0);
  const bool is_double = call.input(0).dtype == DType::F64;
  return {{.dtype = is_double ? DType::F64 : DType::F32, .shape = {}}};
}

void reference(const KernelCall& call) {
  const std::vector<double> x = read_elements(call.input(0));
  double sum = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += kBlock) {
    double block = 0;
    for (std::size_t i = begin; i < std::min(begin + kBlock, x.size()); ++i) block += x[i] * x[i];
    sum += block;
  }
  write_elements(call.outputs[0], std::span(&sum, 1));
}

const Register registration{Op{
    .name = "sum_squares",
    .summary = "the sum of the squares of all elements",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"sum_squares(f32[16,8])", "sum_squares(f32[])"},
}};

}  // namespace
}  // namespace lathe::ops::sum_squares
