#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// constant() {values}: an array written in the graph. Either one value for all elements, which
// suits any shape, or as many values as the shape has elements, in row-major order.
namespace lathe::ops::constant {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& type = declared_type("constant", call);
  const auto count = static_cast<std::int64_t>(call.attributes().reals("values").size());
  if (count != 1 && type.num_elements() != Size(count))
    fail("constant has {} values for {}: expected 1 or {}", count, to_text(type),
         type.num_elements().text());
  return {type};
}

void reference(const KernelCall& call) {
  std::vector<double> values = call.attributes.reals("values");
  if (values.size() == 1)
    values.assign(static_cast<std::size_t>(call.outputs[0].num_elements()), values[0]);
  write_elements(call.outputs[0], values);
}

// Only a filled constant can have symbols in its shape, so any packed shape will do.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  return repeat_packed(graph, node, graph.attributes(node),
                       {packed_type(graph, node, graph.types(node)[0], sequences)});
}

const Register registration{Op{
    .name = "constant",
    .summary = "an array written in the graph: one value for all elements, or all of them",
    .attributes = {{.name = "values",
                    .default_value = std::vector<double>{},
                    .summary = "the elements in row-major order, or one for all",
                    .required = true}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .is_differentiable = false,
    .pack = pack,
    .examples = {"constant() {values=[1.0,2.0,3.0]} : f32[3]",
                 "constant() {values=[0.5]} : f32[B,L]", "constant() {values=[7]} : i64[2,2]"},
}};

}  // namespace
}  // namespace lathe::ops::constant
