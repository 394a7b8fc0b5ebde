#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/report/plot.h"
#include "lathe/report/plot_axis.h"

namespace lathe::report {

/// A trial as charts see it.
struct ChartTrial {
  enum class State { Complete, Pruned, Failed, Running, Waiting };
  int number = 0;
  State state = State::Complete;
  std::vector<double> values = {};  ///< by objective; none where it has no result
  std::vector<std::pair<double, double>> reports = {};  ///< steps and values, in order
  std::string tooltip = {};
};

/// A parameter's values as they are drawn: one a row of StudyData, NaN where a trial has none.
struct ParameterColumn {
  Axis axis;  ///< its name; logarithmic or with categories as the parameter is
  std::vector<double> values = {};

  /// The range of the values (not of the distribution), for charts that lay out their own axes.
  AxisScale scale(int num_ticks) const;
};

/// What the charts of a study are drawn from.
struct StudyData {
  struct Objective {
    std::string name;
    bool is_maximized = false;
  };
  std::string name;  ///< of the study
  std::vector<Objective> objectives;
  std::vector<ChartTrial> trials = {};           ///< all, by number
  std::vector<std::size_t> rows = {};            ///< which of them are complete with finite values
  std::vector<bool> is_front = {};               ///< by row: no other beats it in every objective
  std::vector<ParameterColumn> parameters = {};  ///< by row
  /// Names and shares, the most important first.
  std::vector<std::pair<std::string, double>> importance = {};
  std::vector<std::string> chosen = {};  ///< parameters that were asked for; empty: by importance
  std::size_t objective = 0;             ///< the one to draw, where a chart draws one

  const ChartTrial& row(std::size_t index) const { return trials[rows[index]]; }
  /// The values of an objective by row.
  std::vector<double> column(std::size_t objective) const;
  /// The parameter of that name, or nullptr.
  const ParameterColumn* find(std::string_view parameter) const;
  /// At most `most` parameters to draw: those asked for, else by importance.
  std::vector<const ParameterColumn*> choose_parameters(std::size_t most) const;
};

/// The range of an objective worth looking at, as limits of an axis: trials that are far worse than
/// most would flatten the rest. `num_beyond` counts those left out.
struct ObjectiveRange {
  double best = 0, worst = 0;  ///< worst of those within
  std::size_t num_beyond = 0;
  bool is_maximized = false;

  double low() const { return is_maximized ? worst : best; }
  double high() const { return is_maximized ? best : worst; }
  /// The value, or the range's worst end where it is worse.
  double clamp(double value) const;
  bool is_within(double value) const { return value >= low() && value <= high(); }
};
ObjectiveRange objective_range(const std::vector<double>& values, bool is_maximized);

}  // namespace lathe::report
