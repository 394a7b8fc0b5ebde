#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// embedding(ids[..], table[v,n]): y[..,:] = table[ids[..],:].
namespace lathe::ops::embedding {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& ids = call.input(0);
  const Type& table = call.input(1);
  require_integer("embedding", "ids", ids);
  require_rank("embedding", "table", table, 2);
  Type result{.dtype = table.dtype, .shape = ids.shape};
  result.shape.push_back(table.axis(1));
  return {result};
}

void reference(const KernelCall& call) {
  const std::vector<std::int64_t> ids = read_integers(call.input(0));
  const std::int64_t rows = call.input(1).dim(0);
  const std::int64_t width = call.input(1).dim(1);
  std::vector<std::int64_t> indices;
  indices.reserve(ids.size() * static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= rows)
      fail("id {} at position {} is outside the table, which has {} rows", ids[i], i, rows);
    for (std::int64_t j = 0; j < width; ++j) indices.push_back(ids[i] * width + j);
  }
  copy_elements(call.input(1), indices, call.outputs[0]);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Type table = operand_type(graph, node, 1);
  return {kNone,
          derive(graph, node, "gradient_table", "embedding_gradient",
                 {gradients[0], graph.input(node, 0)},
                 {{"rows", constant_size("the gradient of embedding", table.axis(0), table)}})};
}

const Register registration{Op{
    .name = "embedding",
    .summary = "the row of a table for each id",
    .operands = {{.name = "ids"}, {.name = "table", .role = OperandRole::Table}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"embedding(i32[T], f32[10,4])", "embedding(i64[B,L], f32[10,4])"},
}};

}  // namespace
}  // namespace lathe::ops::embedding
