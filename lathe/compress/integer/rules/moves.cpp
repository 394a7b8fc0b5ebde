#include "lathe/compress/integer/integer_lowering.h"

// Ops that move elements or choose among them: the same on integers.
namespace lathe::compress {
namespace {

void lower_move(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const from = lowering.operand(node, 0);
  if (from == nullptr) return;
  // Integers of up to 53 bits are doubles, in which reference kernels compare.
  if (numerics::signed_bits(from->low, from->high) > 53)
    return lowering.refuse(node, "it chooses among sums of more than 53 bits");
  if (from->scales.size() > 1)
    return lowering.refuse(node, fmt::format("{} has a scale for each channel, and no quantizer",
                                             graph.name(graph.input(node, 0))));
  IntegerValue result = *from;
  NodeSpec spec{.name = graph.name(node),
                .op = graph.op(node).name,
                .inputs = {from->value},
                .attributes = graph.attributes(node)};
  for (std::size_t i = 1; i < graph.inputs(node).size(); ++i)
    spec.inputs.push_back(lowering.plain_operand(node, i));
  if (spec.op == "reshape") {
    spec.types = graph.types(node);
    spec.types[0].dtype = lowering.integer_graph().type(from->value).dtype;
  }
  result.value = lowering.add(std::move(spec));
  lowering.set({node, 0}, std::move(result));
}

const Register reshape{IntegerRule{"reshape", lower_move}};
const Register transpose{IntegerRule{"transpose", lower_move}};
const Register select{IntegerRule{"select", lower_move}};
const Register slice{IntegerRule{"slice", lower_move}};
const Register select_in_sequence{IntegerRule{"select_in_sequence", lower_move}};
const Register max_pool2d{IntegerRule{"max_pool2d", lower_move}};
const Register last_token{IntegerRule{"last_token", lower_move}};

}  // namespace
}  // namespace lathe::compress
