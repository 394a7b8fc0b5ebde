#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/last_positions.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// last_token(x[B,L,..], mask[B,L]): the last token of each row that the mask marks as real, [B,..].
// Unlike select {index=-1}, which takes what stands at the end of the padding, this is the same
// whether a batch is padded or packed.
namespace lathe::ops::last_token {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const Type& mask = call.input(1);
  require_rank_at_least("last_token", "x", x, 2);
  require_rank("last_token", "mask", mask, 2);
  if (mask.shape != Shape{x.shape[0], x.shape[1]})
    fail("last_token: mask {} does not fit {}", to_text(mask), to_text(x));
  Type result{.dtype = x.dtype, .shape = x.shape};
  result.shape.erase(result.shape.begin() + 1);
  return {result};
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::vector<std::int64_t> last = last_positions(call.input(1));
  const std::int64_t rows = x.dim(0), length = x.dim(1);
  const std::int64_t width = rows * length == 0 ? 0 : x.num_elements() / (rows * length);
  std::vector<std::int64_t> indices;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < width; ++i)
      indices.push_back((row * length + last[static_cast<std::size_t>(row)]) * width + i);
  copy_elements(x, indices, call.outputs[0]);
}

Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Value x = graph.input(node, 0);
  if (!is_packed(graph.type(x), sequences)) return repeat_packed(graph, node, {});
  return add_packed(graph, node,
                    {.name = {},
                     .op = "select_in_sequence",
                     .inputs = {x, sequences.offsets},
                     .attributes = {{"index", std::int64_t{-1}}}});
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "last_token_gradient",
                 {gradients[0], graph.input(node, 1)}, {}, {operand_type(graph, node, 0)}),
          kNone};
}

const Register registration{Op{
    .name = "last_token",
    .summary = "the last real token of each row",
    .operands = {{.name = "x"}, {.name = "mask"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .pack = pack,
    .examples = {"last_token(f32[B,L,4], i32[B,L])", "last_token(f32[B,L], i32[B,L])"},
}};

}  // namespace
}  // namespace lathe::ops::last_token
