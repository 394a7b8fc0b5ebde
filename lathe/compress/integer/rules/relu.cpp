#include <algorithm>

#include "lathe/compress/integer/integer_lowering.h"

// relu keeps what it does not make 0, so integers keep their scale. Behind sums it changes places
// with the quantizers that read it: a requant never falls and keeps 0, so that the two give the
// same in either order, and narrow numbers are cheaper to look at.
namespace lathe::compress::relu_rule {
namespace {

IntegerValue rectified(IntegerLowering& lowering, const std::string& name,
                       const IntegerValue& from) {
  if (from.low >= 0) return from;
  IntegerValue result = from;
  result.value = lowering.add({.name = name, .op = "relu", .inputs = {from.value}});
  result.low = 0;
  result.high = std::max<numerics::Integer128>(0, from.high);
  return result;
}

void lower(IntegerLowering& lowering, NodeId node) {
  const Graph& graph = lowering.graph();
  const IntegerValue* const from = lowering.operand(node, 0);
  if (from == nullptr) return;
  const IntegerValue x = *from;
  if (!x.is_sum) return lowering.set({node, 0}, rectified(lowering, graph.name(node), x));
  for (const NodeId quantizer : lowering.quantizers_of(node)) {
    const std::optional<IntegerFormat> format = lowering.format_of(quantizer);
    if (!format) continue;
    const IntegerValue narrow =
        lowering.requant(quantizer, graph.name(quantizer) + "/requant", x, *format);
    lowering.set({quantizer, 0}, rectified(lowering, graph.name(quantizer), narrow));
  }
}

const Register registration{IntegerRule{"relu", lower}};

}  // namespace
}  // namespace lathe::compress::relu_rule
