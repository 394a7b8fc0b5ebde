#include "lathe/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"
#include "lathe/report/plot_frame.h"
#include "lathe/report/plot_range.h"

namespace lathe::report {
namespace {

constexpr int kPlotTicks = 6;
constexpr std::size_t kMostMarkers = 60;  // of a line: beyond that they run into each other

void check_chart(const Chart& chart) {
  check(!chart.title.empty() && !chart.x.label.empty() && !chart.y.label.empty(),
        "a chart to have a title and labels on its axes");
  check(chart.width >= 200 && chart.height >= 150, "a chart large enough to read");
}

std::optional<double> error_at(const std::vector<double>& error, std::size_t index) {
  if (index >= error.size() || !(error[index] > 0) || !std::isfinite(error[index]))
    return std::nullopt;
  return error[index];
}

template <typename SeriesType>
std::vector<std::string> names(const std::vector<SeriesType>& series) {
  std::vector<std::string> result;
  for (const auto& one : series) result.push_back(one.name);
  return result;
}

std::string tooltip(std::string_view name, std::string_view x, double y) {
  return fmt::format("{}{}{}: {}", name, name.empty() ? "" : ", ", x, short_number(y));
}

// Where the end of an error bar is, kept on a logarithmic axis that has no zero.
double bar_end(const PlotFrame& frame, const Axis& axis, double value) {
  return is_drawable(value, axis) ? frame.y(value) : frame.bottom();
}

// The ends of a point's error bar, if it has one.
struct BarEnds {
  double low, high;
};
std::optional<BarEnds> bar_ends(const Series& series, std::size_t index) {
  if (const auto error = error_at(series.error, index))
    return BarEnds{series.y[index] - *error, series.y[index] + *error};
  if (index >= series.low.size() || !std::isfinite(series.low[index]) ||
      !std::isfinite(series.high[index]))
    return std::nullopt;
  return BarEnds{series.low[index], series.high[index]};
}

// How many later series run over a part of this one, so that it would not be seen.
std::size_t num_covering(const PlotFrame& frame, const std::vector<Series>& series,
                         std::size_t index) {
  constexpr double kTouching = 1.5;  // pixels
  const Series& one = series[index];
  std::size_t count = 0;
  for (std::size_t other = index + 1; other < series.size(); ++other) {
    const Series& two = series[other];
    std::size_t in_a_row = 0, most = 0;
    for (std::size_t i = 0; i < std::min(one.x.size(), two.x.size()); ++i) {
      const bool touches = std::abs(frame.x(one.x[i]) - frame.x(two.x[i])) < kTouching &&
                           std::abs(frame.y(one.y[i]) - frame.y(two.y[i])) < kTouching;
      in_a_row = touches ? in_a_row + 1 : 0;
      most = std::max(most, in_a_row);
    }
    count += most >= std::min<std::size_t>(2, one.x.size());
  }
  return one.x.empty() ? 0 : count;
}

std::string draw_points(const Chart& chart, const std::vector<Series>& series, bool has_lines) {
  check_chart(chart);
  PlotRange x_range, y_range;
  for (const Series& one : series) {
    check(one.x.size() == one.y.size(), "as many x as y values in a series");
    check(one.error.empty() || one.error.size() == one.y.size(), "an error for each point or none");
    for (std::size_t i = 0; i < one.x.size(); ++i) {
      if (!is_drawable(one.x[i], chart.x) || !is_drawable(one.y[i], chart.y)) continue;
      x_range.include(one.x[i], chart.x);
      y_range.include(one.y[i], chart.y);
      if (const auto ends = bar_ends(one, i)) {
        y_range.include(ends->low, chart.y);
        y_range.include(ends->high, chart.y);
      }
    }
  }
  PlotFrame frame(chart, x_range.scale(chart.x), y_range.scale(chart.y), names(series));
  if (x_range.is_empty()) frame.add_notice("no data");
  for (std::size_t s = 0; s < series.size(); ++s) {
    const Series& one = series[s];
    std::string line;
    bool is_joined = false;
    for (std::size_t i = 0; i < one.x.size(); ++i) {
      const bool can_draw = is_drawable(one.x[i], chart.x) && is_drawable(one.y[i], chart.y);
      if (can_draw)
        line += fmt::format("{}{} {}", is_joined ? "L" : "M", pixel(frame.x(one.x[i])),
                            pixel(frame.y(one.y[i])));
      is_joined = can_draw;
    }
    const double covered = static_cast<double>(num_covering(frame, series, s));
    if (has_lines && !line.empty())
      frame.add(fmt::format(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\" "
          "stroke-linejoin=\"round\"{}/>\n",
          line, series_color(s), 2 + 4 * covered, covered > 0 ? " stroke-opacity=\"0.5\"" : ""));
    for (std::size_t i = 0; i < one.x.size(); ++i) {
      if (!is_drawable(one.x[i], chart.x) || !is_drawable(one.y[i], chart.y)) continue;
      const double x = frame.x(one.x[i]);
      // Bars of several series stand beside each other.
      const double aside =
          (static_cast<double>(s) - (static_cast<double>(series.size()) - 1) / 2) * 3;
      if (const auto ends = bar_ends(one, i))
        frame.add_error_bar(x + aside, bar_end(frame, chart.y, ends->low),
                            bar_end(frame, chart.y, ends->high), series_color(s));
      if (!has_lines || one.x.size() <= kMostMarkers)
        frame.add_marker(x, frame.y(one.y[i]), s, 4 + 2.5 * covered,
                         tooltip(one.name, short_number(one.x[i]), one.y[i]));
    }
  }
  return frame.str();
}

void add_bar(PlotFrame& frame, double left, double width, double y, double base, std::size_t series,
             std::string_view title) {
  frame.add(
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\">"
                  "<title>",
                  pixel(left), pixel(std::min(y, base)), pixel(width), pixel(std::abs(base - y)),
                  series_color(series)));
  frame.add(title);
  frame.add("</title></rect>\n");
}

// Where values are rounded to, and beyond what they are clipped.
void add_marks(PlotFrame& frame, const AxisScale& x, const HistogramMarks& marks) {
  const auto is_seen = [&](double value) { return value >= x.low && value <= x.high; };
  const auto clip = [&](double bound, double edge, const char* text) {
    if (!is_seen(bound)) return;
    const double left = std::min(frame.x(bound), edge), width = std::abs(frame.x(bound) - edge);
    frame.add(fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.13\">"
        "<title>{}</title></rect>\n",
        pixel(left), pixel(frame.top()), pixel(width), pixel(frame.bottom() - frame.top()),
        series_color(1), text));
    frame.add(
        svg_line(frame.x(bound), frame.top(), frame.x(bound), frame.bottom(), series_color(1)));
  };
  if (marks.low) clip(*marks.low, frame.left(), "clipped");
  if (marks.high) clip(*marks.high, frame.right(), "clipped");
  std::string path;
  double last = -1;
  for (const double level : marks.levels) {
    if (!is_seen(level)) continue;
    const double at = frame.x(level);
    if (last >= 0 && at - last < 0.75) continue;  // nobody sees more
    last = at;
    path += fmt::format("M{} {}v6", pixel(at), pixel(frame.bottom() - 3));
  }
  if (!path.empty())
    frame.add(fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"0.8\"/>\n", path,
                          series_color(1)));
}

}  // namespace

std::string line_chart(const Chart& chart, const std::vector<Series>& series) {
  return draw_points(chart, series, true);
}

std::string scatter_chart(const Chart& chart, const std::vector<Series>& series) {
  return draw_points(chart, series, false);
}

std::string bar_chart(const Chart& chart, const std::vector<std::string>& categories,
                      const std::vector<BarSeries>& series) {
  check_chart(chart);
  check(!categories.empty() && !series.empty(), "a bar chart to have categories and series");
  PlotRange range;
  if (!chart.y.is_logarithmic) range.include(0, chart.y);
  for (const BarSeries& one : series) {
    check(one.values.size() == categories.size(), "a value for each category");
    check(one.error.empty() || one.error.size() == one.values.size(),
          "an error for each bar or none");
    for (std::size_t i = 0; i < one.values.size(); ++i) {
      const double error = error_at(one.error, i).value_or(0);
      range.include(one.values[i], chart.y);
      range.include(one.values[i] + error, chart.y);
      if (one.values[i] < 0) range.include(one.values[i] - error, chart.y);
    }
  }
  PlotFrame frame(chart, category_scale(categories), range.scale(chart.y), names(series));
  const double room = (frame.right() - frame.left()) / static_cast<double>(categories.size());
  const double width = room * 0.8 / static_cast<double>(series.size());
  const double base = chart.y.is_logarithmic ? frame.bottom() : frame.y(0);
  for (std::size_t s = 0; s < series.size(); ++s)
    for (std::size_t i = 0; i < categories.size(); ++i) {
      const double value = series[s].values[i];
      if (!is_drawable(value, chart.y)) continue;
      const double left =
          frame.left() + room * (static_cast<double>(i) + 0.1) + width * static_cast<double>(s);
      add_bar(
          frame, left, width * 0.94, frame.y(value), base, s,
          escape_markup(tooltip(series.size() > 1 ? series[s].name : "", categories[i], value)));
      if (const auto error = error_at(series[s].error, i))
        frame.add_error_bar(left + width * 0.47, bar_end(frame, chart.y, value - *error),
                            bar_end(frame, chart.y, value + *error), "#333333");
    }
  return frame.str();
}

std::string histogram(const Chart& chart, const std::vector<double>& values, int num_bins,
                      const HistogramMarks& marks) {
  check_chart(chart);
  check(num_bins >= 1 && num_bins <= 1000, "1 to 1000 bins");
  PlotRange range;
  for (const double value : values) range.include(value, chart.x);
  if (range.is_empty()) {
    PlotFrame frame(chart, range.scale(chart.x), linear_scale(0, 1, kPlotTicks), {});
    frame.add_notice("no data");
    return frame.str();
  }
  // The scale's own ends rather than the values', so that equal values have room on both sides.
  const AxisScale x = range.scale(chart.x, kPlotTicks, false);
  std::vector<double> counts(static_cast<std::size_t>(num_bins), 0);
  for (const double value : values) {
    if (!is_drawable(value, chart.x)) continue;
    const auto bin = static_cast<std::int64_t>(std::floor(x.position(value) * num_bins));
    ++counts[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, num_bins - 1))];
  }
  PlotRange count_range;
  for (const double count : counts) count_range.include(count, chart.y);
  if (!chart.y.is_logarithmic) count_range.include(0, chart.y);
  PlotFrame frame(chart, x, count_range.scale(chart.y), {});
  const double width = (frame.right() - frame.left()) / num_bins;
  const double base = chart.y.is_logarithmic ? frame.bottom() : frame.y(0);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (is_drawable(counts[i], chart.y) && counts[i] > 0)
      add_bar(frame, frame.left() + width * static_cast<double>(i), std::max(width - 0.5, 0.5),
              frame.y(counts[i]), base, 0, fmt::format("{:.0f}", counts[i]));
  add_marks(frame, x, marks);
  return frame.str();
}

}  // namespace lathe::report
