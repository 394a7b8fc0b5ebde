#pragma once

#include <string>
#include <vector>

#include "lathe/report/plot.h"
#include "lathe/report/plot_axis.h"
#include "lathe/study/history.h"

namespace lathe::cli {

/// A parameter's values as they are drawn: one a row of the table, NaN where a trial has none.
struct ParameterColumn {
  report::Axis axis;  ///< its name; logarithmic or with categories as the parameter is
  std::vector<double> values = {};

  /// The range of the values (not of the distribution), for charts that lay out their own axes.
  report::AxisScale scale(int num_ticks) const;
};

/// The complete trials of a study with finite values, column by column, for plots.
struct TrialTable {
  std::vector<const study::TrialRecord*> trials = {};  ///< by number
  std::vector<std::vector<double>> objectives = {};    ///< by objective, then by row
  std::vector<ParameterColumn> parameters = {};

  std::size_t num_rows() const { return trials.size(); }
  /// The column of that name, or nullptr.
  const ParameterColumn* find(std::string_view parameter) const;
};
TrialTable tabulate(const study::History& history);

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
ObjectiveRange objective_range(const std::vector<double>& values, study::Direction direction);

}  // namespace lathe::cli
