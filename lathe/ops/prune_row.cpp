#include "lathe/ops/prune_row.h"

#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

namespace lathe::ops {

AttributeSpec sparsity_attribute() {
  return {.name = "sparsity",
          .default_value = 0.0,
          .summary = "the share of each row that becomes 0",
          .required = true};
}

void check_pruned_rows(std::string_view op, const OpCall& call, std::size_t x) {
  require_floating(op, call, x);
  require_rank_at_least(op, "x", call.input(x), 1);
  const double sparsity = call.attributes().real("sparsity");
  if (!(sparsity >= 0 && sparsity < 1))
    fail("{}: sparsity={:g}: expected 0 or more and below 1", op, sparsity);
}

void run_pruned_rows(const KernelCall& call, const Tensor& x, const Tensor& from) {
  const std::vector<double> values = read_elements(x), copied = read_elements(from);
  std::vector<double> y(values.size()), room;
  const std::int64_t columns = x.dims().back();
  const std::int64_t count = num_pruned(call.attributes.real("sparsity"), columns);
  for (std::size_t row = 0; row < values.size(); row += static_cast<std::size_t>(columns))
    prune_row(values.data() + row, copied.data() + row, columns, count, y.data() + row, room);
  write_elements(call.outputs[0], y);
}

}  // namespace lathe::ops
