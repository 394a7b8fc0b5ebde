#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/sequence_offsets.h"

// positions(x[B,L]): 0 to L-1 in every row, or from {first} on. Its dtype is the one written, else
// that of x when x holds integers, else i64. packed_positions(offsets[S+1]): the same for a run of
// tokens: each sequence counts anew. The number of tokens cannot be read off the operand's type, so
// the result type is written.
namespace lathe::ops::positions {
namespace {

std::vector<Type> infer_positions(const OpCall& call) {
  const Type& x = call.input(0);
  require_rank("positions", "x", x, 2);
  DType dtype = is_floating(x.dtype) ? DType::I64 : x.dtype;
  if (!call.declared().empty()) dtype = call.declared()[0].dtype;
  const Type result{.dtype = dtype, .shape = x.shape};
  require_integer("positions", "results", result);
  return {result};
}

double first_of(const KernelCall& call) {
  return static_cast<double>(call.attributes.integer("first"));
}

void positions(const KernelCall& call) {
  const auto length = static_cast<std::size_t>(call.input(0).dim(1));
  std::vector<double> values(static_cast<std::size_t>(call.outputs[0].num_elements()));
  const double first = first_of(call);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = first + static_cast<double>(i % length);
  write_elements(call.outputs[0], values);
}

Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  if (!is_packed(graph.type(graph.input(node, 0)), sequences))
    return repeat_packed(graph, node, {});
  const Type type{.dtype = DType::I32, .shape = {Size::symbol(sequences.tokens)}};
  return add_packed(graph, node,
                    {.name = {},
                     .op = "packed_positions",
                     .inputs = {sequences.offsets},
                     .attributes = graph.attributes(node),
                     .types = {type}});
}

std::vector<Type> infer_packed_positions(const OpCall& call) {
  require_offsets(call.input(0));
  const Type& type = declared_type("packed_positions", call);
  require_integer("packed_positions", "results", type);
  require_rank("packed_positions", "results", type, 1);
  return {type};
}

void packed_positions(const KernelCall& call) {
  const std::vector<std::int64_t> offsets =
      read_offsets(call.input(0), call.outputs[0].num_elements());
  const double first = first_of(call);
  std::vector<double> values;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    for (std::int64_t i = offsets[s]; i < offsets[s + 1]; ++i)
      values.push_back(first + static_cast<double>(i - offsets[s]));
  write_elements(call.outputs[0], values);
}

Size flops(const OpCall&) {
  return 0;
}

const AttributeSpec kFirst{.name = "first",
                           .default_value = std::int64_t{0},
                           .summary = "the position of the first token"};

const Register padded{Op{
    .name = "positions",
    .summary = "the position of each token in its row: 0, 1, 2, ...",
    .operands = {{.name = "x"}},
    .attributes = {kFirst},
    .infer = infer_positions,
    .flops = flops,
    .reference = positions,
    .is_differentiable = false,
    .pack = pack,
    .examples = {"positions(i64[B,L])", "positions(f32[2,4]) : i32[2,4]",
                 "positions(i32[B,L]) {first=2}"},
}};

const Register packed{Op{
    .name = "packed_positions",
    .summary = "the position of each token of a packed batch in its own sequence",
    .operands = {{.name = "offsets"}},
    .attributes = {kFirst},
    .infer = infer_packed_positions,
    .flops = flops,
    .reference = packed_positions,
    .is_differentiable = false,
    .examples = {"packed_positions(i32[S+1]) : i32[T]",
                 "packed_positions(i32[S+1]) {first=2} : i32[T]"},
}};

}  // namespace
}  // namespace lathe::ops::positions
