#include "lathe/core/op.h"
#include "lathe/ops/operand_checks.h"

namespace lathe::ops::sources {
namespace {

// A source is exactly what is written on it: there is nothing to infer it from.
std::vector<Type> infer_input(const OpCall& call) {
  return {declared_type("input", call)};
}
std::vector<Type> infer_state(const OpCall& call) {
  return {declared_type("state", call)};
}

Size flops(const OpCall&) {
  return 0;
}

// No reference kernels: whoever runs the graph provides the values.
const Register input{Op{
    .name = "input",
    .summary = "a value given to each run; its type is the one written",
    .infer = infer_input,
    .flops = flops,
    .is_source = true,
    .is_differentiable = false,
    .examples = {"input() : f32[B,4]", "input() : i64[B,L]"},
}};

const Register state{Op{
    .name = "state",
    .summary = "a value kept between runs, such as a parameter; its type is the one written",
    .attributes = {{"init", std::string("zeros"), "how it starts: zeros, ones, normal or uniform"},
                   {"scale", 0.0, "the deviation of a normal start, the bound of a uniform one"},
                   {"role", std::string("parameter"),
                    "what it is for: parameter, buffer, mask, scale, zero, codes, moment, counter "
                    "or cache"}},
    .infer = infer_state,
    .flops = flops,
    .is_source = true,
    .is_differentiable = false,
    .examples = {"state() {init=\"normal\", scale=0.02} : f32[16,8]",
                 "state() {role=\"mask\"} : f32[16,8]", "state() : f32[]"},
}};

}  // namespace
}  // namespace lathe::ops::sources
