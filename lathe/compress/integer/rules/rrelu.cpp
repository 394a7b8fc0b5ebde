#include "lathe/compress/integer/integer_lowering.h"

// A randomised leaky relu works on rounded numbers and keeps their scale. Its slopes are those of
// the shift register, 8 to 20 64ths: only what is trained with about these is lowered.
namespace lathe::compress::rrelu_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  const AttributeReader attributes = lowering.graph().attribute(node);
  const double least = attributes.real("lower"), most = attributes.real("upper");
  if (least != 1.0 / 8 || most != 1.0 / 3)
    return lowering.refuse(node, fmt::format("slopes from {} to {}, and integers have those of "
                                             "1/8 to 1/3",
                                             least, most));
  const IntegerValue* const x = lowering.rounded_operand(node, 0);
  if (x == nullptr) return;
  IntegerValue result = *x;
  if (x->low < 0)
    result.value = lowering.add({.name = lowering.graph().name(node),
                                 .op = "integer_rrelu",
                                 .inputs = {x->value},
                                 .attributes = {{"lanes", attributes.integer("lanes")},
                                                {"first", attributes.integer("first")},
                                                {"taps", attributes.integer("taps")}}});
  lowering.set({node, 0}, result);
}

const Register registration{IntegerRule{"rrelu", lower}};

}  // namespace
}  // namespace lathe::compress::rrelu_rule
