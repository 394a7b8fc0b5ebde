#include "lathe/report/study_charts/study_charts.h"

#include <fmt/format.h>

namespace lathe::report {
namespace {

std::string missing_trials(const StudyData& data) {
  return data.trials.empty() ? "it has no trials" : "";
}

std::string nothing_missing(const StudyData& data) {
  return data.rows.empty() ? "no trial is complete" : "";
}

std::string missing_parameters(const StudyData& data) {
  if (data.rows.empty()) return "no trial is complete";
  return data.parameters.empty() ? "its trials have no parameters" : "";
}

std::string missing_pair(const StudyData& data) {
  if (data.rows.empty()) return "no trial is complete";
  return data.parameters.size() < 2 ? "it needs two parameters" : "";
}

std::string missing_importance(const StudyData& data) {
  if (data.rows.empty()) return "no trial is complete";
  return data.importance.empty() ? "it needs more complete trials with different values" : "";
}

std::string missing_objectives(const StudyData& data) {
  if (data.objectives.size() < 2) return "it needs two objectives";
  return nothing_missing(data);
}

std::string missing_reports(const StudyData& data) {
  for (const ChartTrial& trial : data.trials)
    if (!trial.reports.empty()) return "";
  return "no trial has reported";
}

}  // namespace

const std::vector<StudyChart>& study_charts() {
  static const std::vector<StudyChart> kinds = {
      {"history", "History", history_chart, missing_trials},
      {"pareto", "Pareto front", pareto_chart, missing_objectives},
      {"importance", "Importance", importance_chart, missing_importance},
      {"parallel", "Parallel coordinates", parallel_chart, missing_parameters},
      {"slice", "Slices", slice_charts, missing_parameters},
      {"contour", "Contour", contour_chart, missing_pair},
      {"intermediate", "Intermediate values", intermediate_chart, missing_reports},
  };
  return kinds;
}

double point_size(std::size_t count) {
  return count <= 100 ? 4 : count <= 1000 ? 3 : count <= 3000 ? 2 : 1.5;
}

double point_opacity(std::size_t count) {
  return count <= 100 ? 0.9 : count <= 1000 ? 0.7 : 0.5;
}

std::string edge_text(std::size_t num_beyond) {
  return num_beyond == 0 ? "" : fmt::format(" ({} far worse at the edge)", num_beyond);
}

std::string beyond_text(std::size_t num_beyond) {
  return num_beyond == 0 ? "" : fmt::format(" ({} far worse left out)", num_beyond);
}

std::string left_out_text(const StudyData& data, std::size_t num_parameters,
                          std::size_t num_beyond) {
  std::vector<std::string> parts;
  if (data.chosen.empty() && num_parameters < data.parameters.size())
    parts.push_back(fmt::format("{} of {} parameters", num_parameters, data.parameters.size()));
  if (num_beyond == 1)
    parts.emplace_back("one trial far worse than the others is left out");
  else if (num_beyond > 1)
    parts.push_back(fmt::format("{} trials far worse than the others are left out", num_beyond));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace lathe::report
