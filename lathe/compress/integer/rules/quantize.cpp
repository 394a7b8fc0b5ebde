#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/ops/integer/integer_result.h"

// A quantizer of an activation is a requant of what it rounds, or where floats enter.
namespace lathe::compress::quantize_rule {
namespace {

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const Value x = graph.input(node, 0);
  const bool is_input = graph.is(x.node, "input");
  // First, so that a format that has no integers is named behind what stays float too.
  const std::optional<IntegerFormat> format = lowering.format_of(node);
  if (!format) return;
  const IntegerValue* const from = is_input ? nullptr : lowering.operand(node, 0);
  if (from != nullptr)
    return lowering.set({node, 0}, lowering.requant(node, graph.name(node), *from, *format));
  // Of what stays float no graph is made; it goes on as if floats entered here, so that all that
  // stays float behind it is named too.
  const Value floats = is_input ? lowering.plain_operand(node, 0)
                                : lowering.add({.name = graph.name(x) + "/refused",
                                                .op = "input",
                                                .inputs = {},
                                                .types = {graph.type(x)}});
  const Value entered =
      lowering.add({.name = graph.name(node),
                    .op = "to_integer",
                    .inputs = {floats},
                    .attributes = ops::to_attributes(format->range, {format->scale})});
  lowering.set({node, 0}, IntegerLowering::in_format(entered, *format));
}

const Register registration{IntegerRule{"quantize", lower}};

}  // namespace
}  // namespace lathe::compress::quantize_rule
