#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lathe::report {

/// One side of a chart.
struct Axis {
  std::string label;  ///< required: what is measured, and its unit
  bool is_logarithmic = false;
  std::vector<std::string> categories = {};  ///< if any: values 0, 1, ... stand for these
  /// Values beyond are left out.
  std::optional<double> low = {}, high = {};
  bool is_symmetric = false;  ///< reaches as far below 0 as above it
};

/// What every chart has. Titles and labels may hold anything; they are escaped.
struct Chart {
  std::string title;  ///< required
  Axis x = {};
  Axis y = {};
  int width = 720;
  int height = 420;
};

/// Points that belong together. `error`, if any, is one half length of an error bar for each point;
/// `low` and `high`, if any, are the ends of bars that are not even.
/// A point that is not finite, or not positive on a logarithmic axis, is left out.
struct Series {
  std::string name;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> error = {};
  std::vector<double> low = {}, high = {};
};

/// Values of one colour in a bar chart, one for each category; one that is not finite is left out.
struct BarSeries {
  std::string name;
  std::vector<double> values;
  std::vector<double> error = {};
};

// Each chart is a self-contained SVG document: no scripts, styles or identifiers, so that any
// number of them can stand in one page. The same data give the same bytes. Several series get a
// legend and colours that people with any kind of colour vision can tell apart.

/// Points joined by lines, in the order they are given; a point left out breaks its line. A line
/// that later ones cover is drawn wider below them, so that all are seen.
std::string line_chart(const Chart& chart, const std::vector<Series>& series);

/// Points alone.
std::string scatter_chart(const Chart& chart, const std::vector<Series>& series);

/// A group of bars for each category, from zero (from the lowest tick on a logarithmic axis).
std::string bar_chart(const Chart& chart, const std::vector<std::string>& categories,
                      const std::vector<BarSeries>& series);

/// What a histogram shows of how its values are rounded.
struct HistogramMarks {
  std::vector<double> levels = {};  ///< ticks below the bars
  /// Values beyond these are clipped: shaded, behind a line each.
  std::optional<double> low = {}, high = {};
};

/// How many of `values` fall into each of `num_bins` equal parts of their range.
std::string histogram(const Chart& chart, const std::vector<double>& values, int num_bins = 30,
                      const HistogramMarks& marks = {});

}  // namespace lathe::report
