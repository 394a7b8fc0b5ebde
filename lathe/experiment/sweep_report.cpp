#include "lathe/experiment/sweep_report.h"

#include <algorithm>

#include "lathe/io/atomic_file.h"
#include "lathe/report/plot.h"

namespace lathe::experiment {

report::Table sweep_table(const SweepResult& result) {
  report::Table table(
      {result.variable, "format", "bits", "PTQ", "PTQ - float", "QAT", "QAT - float"});
  const auto difference = [&](double accuracy) {
    return fmt::format("{:+.2f}", 100 * (accuracy - result.plain));
  };
  for (const SweepPoint& point : result.points)
    table.row({fmt::format("{:g}", point.value), point.format, fmt::format("{}", point.bits),
               fmt::format("{:.4f}", point.rounded), difference(point.rounded),
               point.trained ? fmt::format("{:.4f}", *point.trained) : "-",
               point.trained ? difference(*point.trained) : "-"});
  return table;
}

void write_report(const SweepResult& result, const std::filesystem::path& directory) {
  report::Series rounded{.name = "rounded", .x = {}, .y = {}};
  report::Series trained{.name = "rounded and trained", .x = {}, .y = {}};
  report::Series plain{.name = "float", .x = {}, .y = {}};
  for (const SweepPoint& point : result.points) {
    rounded.x.push_back(point.value);
    rounded.y.push_back(point.rounded);
    plain.x.push_back(point.value);
    plain.y.push_back(result.plain);
    if (!point.trained) continue;
    trained.x.push_back(point.value);
    trained.y.push_back(*point.trained);
  }
  std::vector<report::Series> series{rounded};
  if (!trained.x.empty()) series.push_back(trained);
  series.push_back(plain);
  std::string label = result.variable;
  std::replace(label.begin(), label.end(), '_', ' ');
  io::write_atomically(directory / "sweep.svg",
                       report::line_chart({.title = "Accuracy by " + label,
                                           .x = {.label = label},
                                           .y = {.label = "accuracy, " + result.measured_on}},
                                          series));
  io::write_atomically(directory / "table.md",
                       fmt::format("Accuracy of {}; float {:.4f}.\n\n{}", result.measured_on,
                                   result.plain, sweep_table(result).to_markdown()));
}

}  // namespace lathe::experiment
