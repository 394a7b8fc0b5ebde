#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// embedding_gradient(dy[..,n], ids[..]) {rows}: the gradient of the table, [rows,n]: row r is the
// sum of dy over the places whose id is r.
namespace lathe::ops::embedding_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("embedding_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& ids = call.input(1);
  const std::int64_t rows = call.attributes().integer("rows");
  require_rank_at_least("embedding_gradient", "dy", dy, 1);
  require_integer("embedding_gradient", "ids", ids);
  if (ids.shape != Shape(dy.shape.begin(), dy.shape.end() - 1))
    fail("embedding_gradient: ids {} do not fit dy {}", to_text(ids), to_text(dy));
  if (rows < 0) fail("embedding_gradient: rows={} must not be negative", rows);
  return {{.dtype = dy.dtype, .shape = {Size(rows), dy.axis(-1)}}};
}

void reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const std::vector<std::int64_t> ids = read_integers(call.input(1));
  const std::int64_t rows = call.attributes.integer("rows");
  const auto width = static_cast<std::size_t>(call.input(0).dims().back());
  std::vector<double> table(static_cast<std::size_t>(rows) * width, 0.0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= rows)
      fail("id {} at position {} is outside the table, which has {} rows", ids[i], i, rows);
    for (std::size_t j = 0; j < width; ++j)
      table[static_cast<std::size_t>(ids[i]) * width + j] += dy[i * width + j];
  }
  write_elements(call.outputs[0], table);
}

const Register registration{Op{
    .name = "embedding_gradient",
    .summary = "the gradient of embedding with respect to its table",
    .operands = {{.name = "dy"}, {.name = "ids"}},
    .attributes = {{.name = "rows",
                    .default_value = 0,
                    .summary = "number of rows of the table",
                    .required = true}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"embedding_gradient(f32[T,4], i32[T]) {rows=10}",
                 "embedding_gradient(f32[B,L,4], i64[B,L]) {rows=2}"},
}};

}  // namespace
}  // namespace lathe::ops::embedding_gradient
