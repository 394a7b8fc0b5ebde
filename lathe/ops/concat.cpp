#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// concat(x, ...) {axis}: the operands one after the other along one axis, equal in all others.
namespace lathe::ops::concat {
namespace {

std::vector<Type> infer(const OpCall& call) {
  if (call.num_inputs() == 0) fail("concat needs one operand or more");
  Type result{.dtype = call.input(0).dtype, .shape = call.input(0).shape};
  const std::size_t axis = axis_position("concat", call.attributes().integer("axis"), result);
  for (std::size_t i = 1; i < call.num_inputs(); ++i) {
    const Type& x = call.input(i);
    require_same_dtype("concatenate", call.input(0), x);
    require_rank("concat", "operands", x, result.rank());
    for (std::size_t other = 0; other < x.rank(); ++other)
      if (other != axis && x.shape[other] != result.shape[other])
        fail("cannot concatenate {} and {} along axis {}: sizes {} and {} differ",
             to_text(call.input(0)), to_text(x), axis, result.shape[other].text(),
             x.shape[other].text());
    result.shape[axis] += x.shape[axis];
  }
  return {result};
}

void reference(const KernelCall& call) {
  Tensor& y = call.outputs[0];
  const std::size_t axis = axis_position(call.attributes.integer("axis"), y.rank());
  const std::int64_t outer = split_around(y.dims(), axis).outer;
  std::byte* target = y.mutable_bytes();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Tensor* x : call.inputs) {
      const std::int64_t block = x->num_bytes() / outer;
      std::memcpy(target, x->bytes() + o * block, static_cast<std::size_t>(block));
      target += block;
    }
  }
}

Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const bool first_packed = is_packed(graph.type(graph.input(node, 0)), sequences);
  for (const Value& operand : graph.inputs(node))
    if (is_packed(graph.type(operand), sequences) != first_packed)
      refuse_to_pack(graph, node, "only some of its operands hold tokens");
  return repeat_packed_along_axis(graph, node, sequences);
}

// Each operand gets its own part, by split where its sizes are known.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  std::vector<Value> inputs = graph.inputs(node);
  const std::size_t count = inputs.size();
  Attributes attributes = graph.attributes(node);
  const std::int64_t axis = graph.attribute(node).integer("axis");
  std::vector<std::int64_t> sizes;
  for (const Value& input : inputs)
    if (const Size& size = graph.type(input).axis(axis); size.is_constant())
      sizes.push_back(size.constant());
  const bool are_known = sizes.size() == count;
  if (are_known) {
    attributes["sizes"] = sizes;
    inputs.clear();
  }
  inputs.insert(inputs.begin(), gradients[0]);
  const Value first = derive(graph, node, "gradient", are_known ? "split" : "concat_gradient",
                             std::move(inputs), std::move(attributes));
  std::vector<Value> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back({first.node, static_cast<std::int32_t>(i)});
  return result;
}

const Register registration{Op{
    .name = "concat",
    .summary = "arrays one after the other along an axis",
    .operands = {{.name = "x", .variadic = true}},
    .attributes = {{.name = "axis", .default_value = 0, .summary = "the axis", .required = true}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = pack,
    .examples = {"concat(f32[T,4], f32[T,2]) {axis=-1}",
                 "concat(f32[B,1,4], f32[B,L,4], f32[B,2,4]) {axis=1}", "concat(i64[3]) {axis=0}"},
}};

}  // namespace
}  // namespace lathe::ops::concat
