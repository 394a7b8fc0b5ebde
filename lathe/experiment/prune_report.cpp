#include "lathe/experiment/prune_report.h"

#include "lathe/core/tensor.h"

namespace lathe::experiment {
namespace {

std::string share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.4f}", static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

PruneTotal prune_total(const compress::PruneResult& result) {
  PruneTotal total;
  for (const compress::UnitReport& unit : result.units) {
    total.granules += unit.granules;
    total.pruned += unit.pruned;
    total.elements += unit.elements;
    total.zeros += unit.zeros;
  }
  return total;
}

report::Table prune_table(const compress::PruneResult& result) {
  report::Table table(
      {"pruned in", "shape", "method", "granularity", "granules", "pruned", "sparsity"});
  for (const compress::UnitReport& unit : result.units)
    table.row({unit.unit, unit.shape.empty() ? "-" : to_text(unit.shape), unit.method,
               unit.granularity, fmt::format("{}", unit.granules), fmt::format("{}", unit.pruned),
               share(unit.zeros, unit.elements)});
  const PruneTotal total = prune_total(result);
  table.row({"all", "-", "-", "-", fmt::format("{}", total.granules),
             fmt::format("{}", total.pruned), share(total.zeros, total.elements)});
  return table;
}

}  // namespace lathe::experiment
