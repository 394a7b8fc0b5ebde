#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/operand_checks.h"

// integer_table(x, table) {low, width, signed, symmetric, scale}: table[x - low]. `low` is the
// lowest integer that x may be; the table has an entry for each that it may.
namespace lathe::ops::integer_table {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type &x = call.input(0), &table = call.input(1);
  require_integer("integer_table", "x", x);
  require_integer("integer_table", "table", table);
  require_rank("integer_table", "table", table, 1);
  const DType storage = storage_of(integer_range(call.attributes()));
  if (table.dtype != storage)
    fail("integer_table: a table of {} does not give {}", name(table.dtype), name(storage));
  return {{.dtype = storage, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  const std::int64_t low = call.attributes.integer("low");
  std::vector<std::int64_t> indices = read_integers(call.input(0));
  for (std::int64_t& x : indices) {
    if (x < low || x - low >= call.input(1).dim(0))
      fail("{} is outside the table, which has {} entries from {} on", x, call.input(1).dim(0),
           low);
    x -= low;
  }
  copy_elements(call.input(1), indices, call.outputs[0]);
}

const Register registration{Op{
    .name = "integer_table",
    .summary = "a function of one integer by a table",
    .operands = {{.name = "x"}, {.name = "table"}},
    .attributes = with_integer_result({{.name = "low",
                                        .default_value = std::int64_t{0},
                                        .summary = "the x of the table's first entry",
                                        .required = true}}),
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"integer_table(i8[T,8], i8[256]) {low=-128, width=8}",
                 "integer_table(i8[B,4], i16[16]) {low=-8, width=9, signed=false}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_table
