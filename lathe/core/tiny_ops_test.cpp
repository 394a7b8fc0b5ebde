// A few ops for the tests of this module, which is linked without the real ones. They have the real
// names where there is such an op, and only the properties that core looks at.

#include "lathe/core/op.h"

namespace lathe {
namespace {

std::vector<Type> as_declared(const OpCall& call) {
  if (call.declared().empty()) fail("the type must be written");
  return {call.declared()[0]};
}

std::vector<Type> as_first_operand(const OpCall& call) {
  return {call.input(0)};
}

const Register input{Op{.name = "input",
                        .summary = "a value given to each run",
                        .infer = as_declared,
                        .is_source = true}};

const Register state{Op{.name = "state",
                        .summary = "a value kept between runs",
                        .attributes = {{"role", std::string("parameter"), "what it is for"}},
                        .infer = as_declared,
                        .is_source = true}};

const Register relu{Op{.name = "relu",
                       .summary = "the positive part",
                       .operands = {{"x"}},
                       .infer = as_first_operand,
                       .flops = [](const OpCall& call) { return call.input(0).num_elements(); }}};

const Register add{Op{
    .name = "add",
    .summary = "the sum of two values of one type",
    .operands = {{"a"}, {"b"}},
    .infer =
        [](const OpCall& call) {
          if (call.input(0) != call.input(1))
            fail("cannot add {} and {}", to_text(call.input(0)), to_text(call.input(1)));
          return std::vector<Type>{call.input(0)};
        },
    .is_commutative = true,
}};

const Register sub{Op{.name = "sub",
                      .summary = "a difference, where order matters",
                      .operands = {{"a"}, {"b"}},
                      .infer = as_first_operand}};

const Register linear{Op{
    .name = "linear",
    .summary = "x . w^T + b",
    .operands = {{.name = "x", .role = OperandRole::Input},
                 {.name = "w", .role = OperandRole::Weight},
                 {.name = "b", .optional = true, .role = OperandRole::Bias}},
    .infer =
        [](const OpCall& call) {
          Type type = call.input(0);
          if (type.axis(-1) != call.input(1).axis(1))
            fail("cannot multiply {} by {}", to_text(type), to_text(call.input(1)));
          type.shape.back() = call.input(1).axis(0);
          return std::vector<Type>{type};
        },
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(0).num_elements() * call.input(1).axis(0);
        },
}};

const Register split{Op{
    .name = "halves",
    .summary = "two values of the operand's type",
    .operands = {{"x"}},
    .num_results = 2,
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{call.input(0), call.input(0)};
        },
}};

const Register join{Op{.name = "join",
                       .summary = "one value out of one or more",
                       .operands = {{"x"}, {"more", false, true}},
                       .infer = as_first_operand}};

const Register rounded{Op{.name = "rounded",
                          .summary = "reads a scale",
                          .operands = {{"x"}, {.name = "scale", .role = OperandRole::Scale}},
                          .infer = as_first_operand}};

const Register scale{Op{.name = "scale",
                        .summary = "has an attribute of every kind",
                        .operands = {{"x"}},
                        .attributes = {{"by", 1.0, "a number"},
                                       {"axis", std::int64_t{-1}, "an integer"},
                                       {"exact", false, "a flag"},
                                       {"mode", std::string("up"), "a text"},
                                       {"axes", std::vector<std::int64_t>{}, "integers"},
                                       {"factors", std::vector<double>{}, "numbers"}},
                        .infer = as_first_operand}};

const Register pad{Op{.name = "pad",
                      .summary = "needs its attribute",
                      .operands = {{"x"}},
                      .attributes = {{"width", std::int64_t{0}, "how much", true}},
                      .infer = as_first_operand}};

const Register dropout{Op{.name = "dropout",
                          .summary = "its operand in inference",
                          .operands = {{"x"}},
                          .attributes = {{"rate", 0.0, "share dropped"}},
                          .infer = as_first_operand,
                          .is_identity_in_inference = true,
                          .dropout_attribute = "rate"}};

const Register attend{Op{.name = "attend",
                         .summary = "drops inside itself",
                         .operands = {{"x"}},
                         .attributes = {{"dropout", 0.0, "share dropped"}},
                         .infer = as_first_operand,
                         .dropout_attribute = "dropout"}};

}  // namespace
}  // namespace lathe
