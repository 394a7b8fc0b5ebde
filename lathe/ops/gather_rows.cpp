#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// gather_rows(x[T,..], indices[M]): row i of the result is row indices[i] of x; a row may be taken
// any number of times. gather_rows_gradient(dy[M,..], indices[M], like[T,..]) adds them back into
// rows of zeros, of which only the shape of `like` is read.
namespace lathe::ops::gather_rows {
namespace {

void check_rows(std::string_view op, const Type& x, const Type& indices) {
  require_rank_at_least(op, "x", x, 1);
  require_integer(op, "indices", indices);
  require_rank(op, "indices", indices, 1);
}

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  check_rows("gather_rows", x, call.input(1));
  Type result{.dtype = x.dtype, .shape = x.shape};
  result.shape[0] = call.input(1).axis(0);
  return {result};
}

std::vector<Type> infer_gradient(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& like = call.input(2);
  check_rows("gather_rows_gradient", like, call.input(1));
  Shape expected = like.shape;
  expected[0] = call.input(1).axis(0);
  if (dy.shape != expected)
    fail("gather_rows_gradient: dy {} does not fit rows of {}: expected shape {}", to_text(dy),
         to_text(like), to_text(expected));
  return {{.dtype = dy.dtype, .shape = like.shape}};
}

std::vector<std::int64_t> read_rows(const Tensor& indices, std::int64_t num_rows) {
  std::vector<std::int64_t> rows = read_integers(indices);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < 0 || rows[i] >= num_rows)
      fail("index {} at position {} is outside the {} rows", rows[i], i, num_rows);
  return rows;
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const std::vector<std::int64_t> rows = read_rows(call.input(1), x.dim(0));
  const std::int64_t width = x.dim(0) == 0 ? 0 : x.num_elements() / x.dim(0);
  std::vector<std::int64_t> elements;
  for (const std::int64_t row : rows)
    for (std::int64_t i = 0; i < width; ++i) elements.push_back(row * width + i);
  copy_elements(x, elements, call.outputs[0]);
}

void gradient_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<std::int64_t> rows = read_rows(call.input(1), call.input(2).dim(0));
  std::vector<double> dx(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  const std::size_t width = rows.empty() ? 0 : dy.size() / rows.size();
  for (std::size_t i = 0; i < dy.size(); ++i)
    dx[static_cast<std::size_t>(rows[i / width]) * width + i % width] += dy[i];
  write_elements(call.outputs[0], dx);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "gather_rows_gradient",
                 {gradients[0], graph.input(node, 1), graph.input(node, 0)}),
          kNone};
}

const Register gather{Op{
    .name = "gather_rows",
    .summary = "the rows of x that indices name",
    .operands = {{.name = "x"}, {.name = "indices"}},
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"gather_rows(f32[T,4], i32[3])", "gather_rows(f32[T], i64[S])"},
}};

const Register scatter{Op{
    .name = "gather_rows_gradient",
    .summary = "the gradient of gather_rows: rows of zeros like x, with dy added where taken",
    .operands = {{.name = "dy"}, {.name = "indices"}, {.name = "like"}},
    .infer = infer_gradient,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = gradient_reference,
    .is_differentiable = false,
    .examples = {"gather_rows_gradient(f32[3,4], i32[3], f32[T,4])"},
}};

}  // namespace
}  // namespace lathe::ops::gather_rows
