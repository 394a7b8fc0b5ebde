#include <algorithm>

#include "lathe/experiment/prune_sweep.h"
#include "lathe/experiment/sweep_cells.h"
#include "lathe/io/atomic_file.h"

namespace lathe::experiment {
namespace {

bool has_several_epochs(const PruneSweepResult& result) {
  return std::ranges::any_of(result.points, [&](const PruneSweepPoint& point) {
    return point.epochs != result.points.front().epochs;
  });
}

// Figures against the sparsity: each method before and after training, and the control.
std::vector<report::Series> curves_by_sparsity(const PruneSweepResult& result) {
  std::vector<report::Series> curves;
  const auto curve = [&](const std::string& name) -> report::Series& {
    const auto found = std::ranges::find(curves, name, &report::Series::name);
    return found != curves.end() ? *found : curves.emplace_back(report::Series{.name = name});
  };
  for (const PruneSweepPoint& point : result.points) {
    add_point(curve(point.method + " before training"), point.sparsity, point.pruned, result.figure,
              result.num_measured);
    if (point.trained)
      add_point(curve(point.method + " after training"), point.sparsity, *point.trained,
                result.figure, result.num_measured);
  }
  curves.push_back(result.controls.empty() ? level_line("unpruned", result.plain, curves)
                                           : level_line("control, trained alone",
                                                        result.controls.begin()->second, curves));
  return curves;
}

// Figures against the epochs, a curve for each method and sparsity; it starts with the model as
// pruned.
std::vector<report::Series> curves_by_training(const PruneSweepResult& result) {
  std::vector<report::Series> curves;
  for (const PruneSweepPoint& point : result.points) {
    const std::string name = fmt::format("{} {:g}", point.method, point.sparsity);
    if (curves.empty() || curves.back().name != name) {
      curves.push_back({.name = name});
      add_point(curves.back(), 0, point.pruned, result.figure, result.num_measured);
    }
    if (point.trained)
      add_point(curves.back(), static_cast<double>(point.epochs), *point.trained, result.figure,
                result.num_measured);
  }
  report::Series control{.name = "control, not pruned"};
  add_point(control, 0, result.plain, result.figure, result.num_measured);
  for (const auto& [epochs, value] : result.controls)
    add_point(control, static_cast<double>(epochs), value, result.figure, result.num_measured);
  curves.push_back(std::move(control));
  return curves;
}

}  // namespace

report::Table prune_sweep_table(const PruneSweepResult& result) {
  const bool shows_epochs = has_several_epochs(result);
  std::vector<std::string> headers{"sparsity", "method"};
  if (shows_epochs) headers.emplace_back("epochs");
  for (const char* const name : {"before", "after", "after - before", "after - control"})
    headers.emplace_back(name);
  headers.insert(headers.end(), kSizeHeaders.begin(), kSizeHeaders.end());
  report::Table table(std::move(headers));
  const auto row = [&](std::string sparsity, std::string method, std::int64_t epochs, double before,
                       std::optional<double> after, const std::vector<std::string>& sizes) {
    std::vector<std::string> cells{std::move(sparsity), std::move(method)};
    if (shows_epochs) cells.push_back(fmt::format("{}", epochs));
    cells.insert(
        cells.end(),
        {figure_cell(before), figure_cell(after), difference_cell(result.figure, after, before),
         difference_cell(result.figure, after, after_epochs(result.controls, epochs))});
    cells.insert(cells.end(), sizes.begin(), sizes.end());
    table.row(std::move(cells));
  };
  const std::vector<std::string> plain_sizes =
      size_cells(result.plain_bytes, result.plain_bytes, result.plain_speed);
  if (result.controls.empty()) row("0", "none", 0, result.plain, std::nullopt, plain_sizes);
  for (const auto& [epochs, control] : result.controls)
    row("0", "none", epochs, result.plain, control, plain_sizes);
  for (const PruneSweepPoint& point : result.points)
    row(fmt::format("{:g}", point.sparsity), point.method, point.epochs, point.pruned,
        point.trained, size_cells(point.bytes, result.plain_bytes, point.tokens_per_second));
  return table;
}

void write_prune_report(const PruneSweepResult& result, const std::filesystem::path& directory) {
  const bool is_by_epochs = has_several_epochs(result);
  const std::string& name = result.figure.name;
  const std::vector<report::Series> curves =
      is_by_epochs ? curves_by_training(result) : curves_by_sparsity(result);
  io::write_atomically(
      directory / "sweep.svg",
      report::line_chart(
          {.title =
               fmt::format("{} by {}{}", capitalized(name), is_by_epochs ? "epochs" : "sparsity",
                           curves.front().low.empty() ? "" : ", with 95 % intervals"),
           .x = {.label = is_by_epochs ? "epochs of training; 0: pruned alone" : "sparsity"},
           .y = {.label = fmt::format("{}, {}", name, result.measured_on)}},
          curves));
  io::write_atomically(
      directory / "table.md",
      fmt::format(
          "{} of {}; unpruned {:.4f}.{} {}\n\n{}", capitalized(name), result.measured_on,
          result.plain,
          result.controls.empty() ? "" : " The control is trained the same without pruning.",
          "Sizes are of all files, tokens/s of the pruned model on this machine.",
          prune_sweep_table(result).to_markdown()));
}

}  // namespace lathe::experiment
