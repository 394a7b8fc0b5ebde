#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/cli/trial_table.h"
#include "lathe/study/history.h"

namespace lathe::cli {

/// What plots are made of.
struct PlotSource {
  std::string name;  ///< of the study
  const study::History* history = nullptr;
  TrialTable table = {};
  std::size_t objective = 0;  ///< the one to draw, where a plot draws one
  /// Names and shares, the most important first.
  std::vector<std::pair<std::string, double>> importance = {};
  std::vector<std::string> parameters = {};  ///< those asked for; empty: the most important

  study::Direction direction() const { return history->directions()[objective]; }
  const std::vector<double>& values() const { return table.objectives[objective]; }
  /// What an objective is called: "value", or "value 1" of several.
  std::string objective_name(std::size_t index) const;
  /// At most `most` parameters to draw: those asked for, else by importance.
  std::vector<const ParameterColumn*> chosen(std::size_t most) const;
};

/// A kind of plot: draws SVG.
struct PlotKind {
  std::string name;
  std::string title;
  std::string (*draw)(const PlotSource& source);
  /// Why the study has nothing for it; empty when it has.
  std::string (*missing)(const PlotSource& source);
};
/// All kinds in the order of a report.
const std::vector<PlotKind>& plot_kinds();

// One file each.
std::string draw_history(const PlotSource& source);
std::string draw_intermediate(const PlotSource& source);
std::string draw_importance(const PlotSource& source);
std::string draw_parallel(const PlotSource& source);
std::string draw_slices(const PlotSource& source);
std::string draw_contour(const PlotSource& source);
std::string draw_pareto(const PlotSource& source);

/// Points get smaller and fainter where they are many.
double point_size(std::size_t count);
double point_opacity(std::size_t count);
/// " (3 far worse left out)" for the end of an axis' label, or nothing.
std::string beyond_text(std::size_t num_beyond);
/// What a plot leaves out, for a line below its title: parameters, trials, or nothing.
std::string left_out_text(const PlotSource& source, std::size_t num_parameters,
                          std::size_t num_beyond);
/// "trial 12: 0.83" and its parameters, for tooltips.
std::string trial_tooltip(const study::TrialRecord& trial);

}  // namespace lathe::cli
