#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// Ops that give truth values: of truth values, logical_and, logical_or, logical_xor and
// logical_not; of numbers, is_nan and is_infinite.
namespace lathe::ops::logic {
namespace {

void require_bool(std::string_view op, const Type& type) {
  if (type.dtype != DType::Bool) fail("{}: {} are no truth values", op, to_text(type));
}

Size flops(const OpCall& call) {
  return call.input(0).num_elements();
}

Op pair_op(const std::string& name, const std::string& summary, bool (*function)(bool, bool)) {
  return {
      .name = name,
      .summary = summary + ", element by element with broadcasting",
      .operands = {{.name = "a"}, {.name = "b"}},
      .infer = [name](const OpCall& call) -> std::vector<Type> {
        require_bool(name, call.input(0));
        require_bool(name, call.input(1));
        return {{.dtype = DType::Bool,
                 .shape = broadcast_shapes("combine", call.input(0), call.input(1))}};
      },
      .flops = flops,
      .reference =
          [function](const KernelCall& call) {
            const auto a_index = broadcast_indices(call.input(0).dims(), call.outputs[0].dims());
            const auto b_index = broadcast_indices(call.input(1).dims(), call.outputs[0].dims());
            const std::span<bool> y = call.outputs[0].mutable_data<bool>();
            for (std::size_t i = 0; i < y.size(); ++i)
              y[i] = function(call.input(0).at(a_index[i]) != 0, call.input(1).at(b_index[i]) != 0);
          },
      .is_commutative = true,
      .is_elementwise = true,
      .is_differentiable = false,
      .examples = {name + "(bool[T,4], bool[T,4])", name + "(bool[B,L,4], bool[4])"},
  };
}

Op test_op(const std::string& name, const std::string& summary, bool takes_bools,
           bool (*function)(double)) {
  return {
      .name = name,
      .summary = summary,
      .operands = {{.name = "x"}},
      .infer = [name, takes_bools](const OpCall& call) -> std::vector<Type> {
        if (takes_bools) require_bool(name, call.input(0));
        return {{.dtype = DType::Bool, .shape = call.input(0).shape}};
      },
      .flops = flops,
      .reference =
          [function](const KernelCall& call) {
            const std::span<bool> y = call.outputs[0].mutable_data<bool>();
            for (std::size_t i = 0; i < y.size(); ++i)
              y[i] = function(call.input(0).at(static_cast<std::int64_t>(i)));
          },
      .is_elementwise = true,
      .is_differentiable = false,
      .is_per_token = true,
      .examples = {name + (takes_bools ? "(bool[T,4])" : "(f32[T,4])")},
  };
}

const Register logical_and{
    pair_op("logical_and", "a and b", [](bool a, bool b) { return a && b; })};
const Register logical_or{pair_op("logical_or", "a or b", [](bool a, bool b) { return a || b; })};
const Register logical_xor{
    pair_op("logical_xor", "a or b, not both", [](bool a, bool b) { return a != b; })};
const Register logical_not{test_op("logical_not", "not x", true, [](double x) { return x == 0; })};
const Register is_nan{
    test_op("is_nan", "whether x is no number", false, [](double x) { return std::isnan(x); })};
const Register is_infinite{
    test_op("is_infinite", "whether x is infinite", false, [](double x) { return std::isinf(x); })};

}  // namespace
}  // namespace lathe::ops::logic
