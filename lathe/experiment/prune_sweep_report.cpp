#include <algorithm>
#include <map>

#include "lathe/experiment/prune_sweep.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/plot.h"

namespace lathe::experiment {
namespace {

std::vector<std::string> methods_of(const PruneSweepResult& result) {
  std::vector<std::string> methods;
  for (const PruneSweepPoint& point : result.points)
    if (std::ranges::find(methods, point.method) == methods.end()) methods.push_back(point.method);
  return methods;
}

std::string text(std::optional<double> accuracy) {
  return accuracy ? fmt::format("{:.4f}", *accuracy) : "-";
}

}  // namespace

report::Table prune_sweep_table(const PruneSweepResult& result) {
  const std::vector<std::string> methods = methods_of(result);
  std::vector<std::string> headers{"sparsity"};
  for (const std::string& method : methods)
    for (const char* const when : {"before", "after", "after - control"})
      headers.push_back(fmt::format("{} {}", method, when));
  report::Table table(std::move(headers));
  const auto difference = [&](std::optional<double> trained) {
    return trained && result.control ? fmt::format("{:+.2f}", 100 * (*trained - *result.control))
                                     : std::string("-");
  };
  std::vector<std::string> control{"none"};
  for (std::size_t i = 0; i < methods.size(); ++i)
    control.insert(control.end(),
                   {text(result.plain), text(result.control), difference(result.control)});
  table.row(std::move(control));
  std::vector<double> sparsities;
  for (const PruneSweepPoint& point : result.points)
    if (std::ranges::find(sparsities, point.sparsity) == sparsities.end())
      sparsities.push_back(point.sparsity);
  for (const double sparsity : sparsities) {
    std::vector<std::string> row{fmt::format("{:g}", sparsity)};
    for (const std::string& method : methods)
      for (const PruneSweepPoint& point : result.points)
        if (point.method == method && point.sparsity == sparsity)
          row.insert(row.end(),
                     {text(point.pruned), text(point.trained), difference(point.trained)});
    table.row(std::move(row));
  }
  return table;
}

void write_prune_report(const PruneSweepResult& result, const std::filesystem::path& directory) {
  std::vector<report::Series> series;
  report::Series control{.name = "control", .x = {}, .y = {}};
  for (const std::string& method : methods_of(result)) {
    report::Series pruned{.name = method + " before training", .x = {}, .y = {}};
    report::Series trained{.name = method + " after training", .x = {}, .y = {}};
    for (const PruneSweepPoint& point : result.points) {
      if (point.method != method) continue;
      pruned.x.push_back(point.sparsity);
      pruned.y.push_back(point.pruned);
      if (series.empty()) {
        control.x.push_back(point.sparsity);
        control.y.push_back(result.control.value_or(result.plain));
      }
      if (!point.trained) continue;
      trained.x.push_back(point.sparsity);
      trained.y.push_back(*point.trained);
    }
    series.push_back(std::move(pruned));
    if (!trained.x.empty()) series.push_back(std::move(trained));
  }
  series.push_back(std::move(control));
  io::write_atomically(directory / "sweep.svg",
                       report::line_chart({.title = "Accuracy by sparsity",
                                           .x = {.label = "sparsity"},
                                           .y = {.label = "accuracy, " + result.measured_on}},
                                          series));
  io::write_atomically(
      directory / "table.md",
      fmt::format("Accuracy of {}; unpruned {:.4f}.{}\n\n{}", result.measured_on, result.plain,
                  result.control ? " The control is trained the same without pruning." : "",
                  prune_sweep_table(result).to_markdown()));
}

}  // namespace lathe::experiment
