#include "lathe/cli/study_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/cli/trial_text.h"
#include "lathe/report/markup.h"

namespace lathe::cli {
namespace {

std::string nothing_missing(const PlotSource& source) {
  return source.table.num_rows() == 0 ? "no trial is complete" : "";
}

std::string missing_parameters(const PlotSource& source) {
  if (source.table.num_rows() == 0) return "no trial is complete";
  return source.table.parameters.empty() ? "its trials have no parameters" : "";
}

std::string missing_pair(const PlotSource& source) {
  if (source.table.num_rows() == 0) return "no trial is complete";
  return source.table.parameters.size() < 2 ? "it needs two parameters" : "";
}

std::string missing_importance(const PlotSource& source) {
  if (source.table.num_rows() == 0) return "no trial is complete";
  return source.importance.empty() ? "it needs more complete trials with different values" : "";
}

std::string missing_objectives(const PlotSource& source) {
  if (source.history->directions().size() < 2) return "it needs two objectives";
  return nothing_missing(source);
}

std::string missing_reports(const PlotSource& source) {
  for (const study::TrialRecord& trial : source.history->trials())
    if (!trial.intermediate_values.empty()) return "";
  return "no trial has reported";
}

}  // namespace

std::string PlotSource::objective_name(std::size_t index) const {
  return history->directions().size() == 1 ? "value" : fmt::format("value {}", index);
}

std::vector<const ParameterColumn*> PlotSource::chosen(std::size_t most) const {
  std::vector<const ParameterColumn*> columns;
  for (const std::string& each : parameters) columns.push_back(table.find(each));
  if (!parameters.empty()) return columns;
  for (const auto& [parameter, share] : importance)
    if (const ParameterColumn* column = table.find(parameter)) columns.push_back(column);
  for (const ParameterColumn& column : table.parameters)
    if (std::find(columns.begin(), columns.end(), &column) == columns.end())
      columns.push_back(&column);
  if (columns.size() > most) columns.resize(most);
  return columns;
}

const std::vector<PlotKind>& plot_kinds() {
  static const std::vector<PlotKind> kinds = {
      {"history", "History", draw_history, nothing_missing},
      {"pareto", "Pareto front", draw_pareto, missing_objectives},
      {"importance", "Importance", draw_importance, missing_importance},
      {"parallel", "Parallel coordinates", draw_parallel, missing_parameters},
      {"slice", "Slices", draw_slices, missing_parameters},
      {"contour", "Contour", draw_contour, missing_pair},
      {"intermediate", "Intermediate values", draw_intermediate, missing_reports},
  };
  return kinds;
}

double point_size(std::size_t count) {
  return count <= 100 ? 4 : count <= 1000 ? 3 : count <= 3000 ? 2 : 1.5;
}

double point_opacity(std::size_t count) {
  return count <= 100 ? 0.9 : count <= 1000 ? 0.7 : 0.5;
}

std::string beyond_text(std::size_t num_beyond) {
  return num_beyond == 0 ? "" : fmt::format(" ({} far worse left out)", num_beyond);
}

std::string left_out_text(const PlotSource& source, std::size_t num_parameters,
                          std::size_t num_beyond) {
  std::vector<std::string> parts;
  if (source.parameters.empty() && num_parameters < source.table.parameters.size())
    parts.push_back(
        fmt::format("{} of {} parameters", num_parameters, source.table.parameters.size()));
  if (num_beyond == 1)
    parts.emplace_back("one trial far worse than the others is left out");
  else if (num_beyond > 1)
    parts.push_back(fmt::format("{} trials far worse than the others are left out", num_beyond));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string trial_tooltip(const study::TrialRecord& trial) {
  return fmt::format("trial {}: {}\n{}", trial.number, values_text(trial.values),
                     report::shorten(parameters_text(trial.parameters), 400));
}

}  // namespace lathe::cli
