#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// Ops that say which of two elements is the larger: bool, with operands broadcast to a common
// shape. With NaN every one of them is false.
namespace lathe::ops::comparisons {
namespace {

struct Comparison {
  std::string name;
  std::string summary;
  bool (*of_reals)(double, double);
  bool (*of_integers)(std::int64_t, std::int64_t);
  bool is_commutative = false;
};

std::vector<Comparison> comparisons() {
  return {
      {"equal", "whether a and b are the same", [](double a, double b) { return a == b; },
       [](std::int64_t a, std::int64_t b) { return a == b; }, true},
      {"greater", "whether a is above b", [](double a, double b) { return a > b; },
       [](std::int64_t a, std::int64_t b) { return a > b; }},
      {"greater_equal", "whether a is not below b", [](double a, double b) { return a >= b; },
       [](std::int64_t a, std::int64_t b) { return a >= b; }},
      {"less", "whether a is below b", [](double a, double b) { return a < b; },
       [](std::int64_t a, std::int64_t b) { return a < b; }},
      {"less_equal", "whether a is not above b", [](double a, double b) { return a <= b; },
       [](std::int64_t a, std::int64_t b) { return a <= b; }},
  };
}

template <typename Element>
void compare(const std::vector<Element>& a, const std::vector<Element>& b,
             bool (*function)(Element, Element), const KernelCall& call) {
  const auto a_index = broadcast_indices(call.input(0).dims(), call.outputs[0].dims());
  const auto b_index = broadcast_indices(call.input(1).dims(), call.outputs[0].dims());
  const std::span<bool> y = call.outputs[0].mutable_data<bool>();
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] =
        function(a[static_cast<std::size_t>(a_index[i])], b[static_cast<std::size_t>(b_index[i])]);
}

void reference(const Comparison& comparison, const KernelCall& call) {
  const Tensor& a = call.input(0);
  const Tensor& b = call.input(1);
  if (is_floating(a.dtype()))
    compare(read_elements(a), read_elements(b), comparison.of_reals, call);
  else
    compare(read_integers(a), read_integers(b), comparison.of_integers, call);
}

Op comparison_op(const Comparison& comparison) {
  const std::string& name = comparison.name;
  return {
      .name = name,
      .summary = comparison.summary + ", element by element with broadcasting",
      .operands = {{.name = "a"}, {.name = "b"}},
      .infer = [name](const OpCall& call) -> std::vector<Type> {
        require_same_dtype("compare", call.input(0), call.input(1));
        return {{.dtype = DType::Bool,
                 .shape = broadcast_shapes("compare", call.input(0), call.input(1))}};
      },
      .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
      .reference = [comparison](const KernelCall& call) { reference(comparison, call); },
      .is_commutative = comparison.is_commutative,
      .is_elementwise = true,
      .is_differentiable = false,
      .examples = {name + "(f32[T,4], f32[T,4])", name + "(i64[B,L,4], i64[4])"},
  };
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const Comparison& comparison : comparisons()) result.emplace_back(comparison_op(comparison));
  return result;
}();

}  // namespace
}  // namespace lathe::ops::comparisons
