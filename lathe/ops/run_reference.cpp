#include "lathe/ops/run_reference.h"

namespace lathe::ops {
namespace {

void check_input(const Graph& graph, Value operand, const Tensor* tensor,
                 const SymbolValues& symbols) {
  if (operand.is_none()) return;
  const Type& type = graph.type(operand);
  check(tensor != nullptr, "a tensor for every operand that is there");
  const std::vector<std::int64_t> dims = type.dims(symbols);
  if (tensor->dtype() != type.dtype || tensor->dims() != dims)
    fail("{} is {}{}, but {} needs {}{}", graph.name(operand), name(tensor->dtype()),
         to_text(std::span(tensor->dims())), to_text(type), name(type.dtype),
         to_text(std::span(dims)));
}

}  // namespace

std::vector<Tensor> run_reference(const Graph& graph, NodeId node,
                                  std::span<const Tensor* const> inputs,
                                  const SymbolValues& symbols) {
  const Op& op = graph.op(node);
  check(inputs.size() == graph.inputs(node).size(), "a place for each operand");
  return with_place(fmt::format("node \"{}\"", graph.name(node)), [&] {
    if (!op.reference) fail("{} has no kernel: its value is given from outside", op.name);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      check_input(graph, graph.input(node, i), inputs[i], symbols);
    std::vector<Tensor> outputs;
    for (const Type& type : graph.types(node)) outputs.emplace_back(type.dtype, type.dims(symbols));
    op.reference({.attributes = graph.attribute(node), .inputs = inputs, .outputs = outputs});
    return outputs;
  });
}

}  // namespace lathe::ops
