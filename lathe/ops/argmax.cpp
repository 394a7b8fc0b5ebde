#include <cmath>
#include <type_traits>

#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// argmax(x[..,n]): the index of the largest element along the last axis, i32[..]; of several equal
// ones the first. Beside a NaN no element is the largest: -1.
namespace lathe::ops::argmax {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_rank_at_least("argmax", "x", x, 1);
  if (x.axis(-1) == Size(0)) fail("argmax of {}: there is no element to choose", to_text(x));
  Type result{.dtype = DType::I32, .shape = x.shape};
  result.shape.pop_back();
  return {result};
}

template <typename Element>
std::vector<std::int64_t> places(const std::vector<Element>& x, std::size_t n) {
  std::vector<std::int64_t> result;
  for (std::size_t row = 0; row < x.size(); row += n) {
    std::size_t best = 0;
    bool has_nan = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (x[row + i] > x[row + best]) best = i;
      if constexpr (std::is_floating_point_v<Element>) has_nan |= std::isnan(x[row + i]);
    }
    result.push_back(has_nan ? -1 : static_cast<std::int64_t>(best));
  }
  return result;
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const auto n = static_cast<std::size_t>(x.dims().back());
  if (n == 0 && x.num_elements() == 0 && call.outputs[0].num_elements() > 0)
    fail("argmax of {}: there is no element to choose", to_text(x.dims()));
  write_integers(call.outputs[0], is_floating(x.dtype()) ? places(read_elements(x), n)
                                                         : places(read_integers(x), n));
}

const Register registration{Op{
    .name = "argmax",
    .summary = "the index of the largest element along the last axis",
    .operands = {{.name = "x"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"argmax(i16[B,4])", "argmax(f32[T,3])"},
}};

}  // namespace
}  // namespace lathe::ops::argmax
