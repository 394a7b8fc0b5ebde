#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/sequence_offsets.h"

// select_in_sequence(x[T,..], offsets[S+1]) {index}: one token of each sequence, [S,..]. Index 0 is
// the first; negative ones count from the end of each sequence.
namespace lathe::ops::select_in_sequence {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  require_rank_at_least("select_in_sequence", "x", x, 1);
  require_offsets(call.input(1));
  Type result{.dtype = x.dtype, .shape = x.shape};
  result.shape[0] = num_sequences(call.input(1));
  return {result};
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::vector<std::int64_t> offsets = read_offsets(call.input(1), x.dim(0));
  const std::int64_t index = call.attributes.integer("index");
  const std::int64_t width = x.dim(0) == 0 ? 0 : x.num_elements() / x.dim(0);
  std::vector<std::int64_t> indices;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t token = (index < 0 ? offsets[s + 1] : offsets[s]) + index;
    if (token < offsets[s] || token >= offsets[s + 1])
      fail("sequence {} has {} tokens and no index {}", s, offsets[s + 1] - offsets[s], index);
    for (std::int64_t i = 0; i < width; ++i) indices.push_back(token * width + i);
  }
  copy_elements(x, indices, call.outputs[0]);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "select_in_sequence_gradient",
                 {gradients[0], graph.input(node, 1)}, graph.attributes(node),
                 {operand_type(graph, node, 0)}),
          kNone};
}

const Register registration{Op{
    .name = "select_in_sequence",
    .summary = "one token of each sequence of a packed batch",
    .operands = {{.name = "x"}, {.name = "offsets"}},
    .attributes = {{.name = "index",
                    .default_value = 0,
                    .summary = "which token; negative ones count from the end of each sequence"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"select_in_sequence(f32[T,4], i32[S+1])",
                 "select_in_sequence(f32[T], i32[S+1]) {index=-1}"},
}};

}  // namespace
}  // namespace lathe::ops::select_in_sequence
