#include "lathe/experiment/sweep_report.h"

#include <algorithm>
#include <set>

#include "lathe/experiment/sweep_cells.h"
#include "lathe/io/atomic_file.h"

namespace lathe::experiment {
namespace {

bool has_many_epochs(const SweepResult& result) {
  std::set<std::int64_t> counts;
  for (const SweepPoint& point : result.points) counts.insert(point.epochs);
  return counts.size() > 1;
}

// Figures against the variable: rounded, trained, and the float model's.
std::vector<report::Series> curves_by_value(const SweepResult& result) {
  std::vector<report::Series> curves{{.name = "rounded"}};
  report::Series trained{.name = "rounded and trained"};
  for (const SweepPoint& point : result.points) {
    add_point(curves.front(), point.value, point.rounded, result.figure, result.num_measured);
    if (point.trained)
      add_point(trained, point.value, *point.trained, result.figure, result.num_measured);
  }
  if (!trained.x.empty()) curves.push_back(trained);
  curves.push_back(level_line("float", result.plain, curves));
  return curves;
}

// Figures against the epochs, a curve for each format; it starts with the model as rounded.
std::vector<report::Series> curves_by_epochs(const SweepResult& result) {
  std::vector<report::Series> curves;
  for (const SweepPoint& point : result.points) {
    if (curves.empty() || curves.back().name != point.format) {
      curves.push_back({.name = point.format});
      add_point(curves.back(), 0, point.rounded, result.figure, result.num_measured);
    }
    if (point.trained)
      add_point(curves.back(), static_cast<double>(point.epochs), *point.trained, result.figure,
                result.num_measured);
  }
  curves.push_back(level_line("float", result.plain, curves));
  return curves;
}

}  // namespace

report::Table sweep_table(const SweepResult& result) {
  const bool shows_epochs = has_many_epochs(result);
  std::vector<std::string> headers{result.variable, "format", "bits"};
  if (shows_epochs) headers.emplace_back("epochs");
  for (const char* const name : {"PTQ", "PTQ - float", "QAT", "QAT - float", "QAT - PTQ"})
    headers.emplace_back(name);
  headers.insert(headers.end(), kSizeHeaders.begin(), kSizeHeaders.end());
  report::Table table(std::move(headers));
  const auto row = [&](std::vector<std::string> cells, const std::string& epochs,
                       const std::vector<std::string>& figures,
                       const std::vector<std::string>& sizes) {
    if (shows_epochs) cells.push_back(epochs);
    cells.insert(cells.end(), figures.begin(), figures.end());
    cells.insert(cells.end(), sizes.begin(), sizes.end());
    table.row(std::move(cells));
  };
  row({"", "float", "32"}, "", {figure_cell(result.plain), "", "", "", ""},
      size_cells(result.plain_bytes, result.plain_bytes, result.plain_speed));
  for (const SweepPoint& point : result.points)
    row({fmt::format("{:g}", point.value), point.format, fmt::format("{}", point.bits)},
        fmt::format("{}", point.epochs),
        {figure_cell(point.rounded), difference_cell(result.figure, point.rounded, result.plain),
         figure_cell(point.trained), difference_cell(result.figure, point.trained, result.plain),
         difference_cell(result.figure, point.trained, point.rounded)},
        size_cells(point.bytes, result.plain_bytes, point.tokens_per_second));
  return table;
}

void write_report(const SweepResult& result, const std::filesystem::path& directory) {
  std::string label = result.variable;
  std::replace(label.begin(), label.end(), '_', ' ');
  const bool is_by_epochs = has_many_epochs(result);
  if (is_by_epochs) label = "epochs";
  const std::vector<report::Series> curves =
      is_by_epochs ? curves_by_epochs(result) : curves_by_value(result);
  const std::string svg = report::line_chart(
      {.title = fmt::format("{} by {}{}", capitalized(result.figure.name), label,
                            curves.front().low.empty() ? "" : ", with 95 % intervals"),
       .x = {.label = is_by_epochs ? "epochs of training; 0: rounded alone" : label},
       .y = {.label = fmt::format("{}, {}", result.figure.name, result.measured_on)}},
      curves);
  io::write_atomically(directory / "sweep.svg", svg);
  io::write_atomically(directory / "table.md",
                       fmt::format("{} of {}; float {:.4f}. Sizes are of all files, tokens/s "
                                   "of the rounded model on this machine.\n\n{}",
                                   capitalized(result.figure.name), result.measured_on,
                                   result.plain, sweep_table(result).to_markdown()));
}

}  // namespace lathe::experiment
