#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/report/plot.h"
#include "lathe/report/plot_axis.h"
#include "lathe/report/svg_elements.h"

namespace lathe::report {

/// Marks of one layer that are told about one by one: among more nobody finds a point anyway.
inline constexpr std::size_t kMostTooltips = 1000;

/// Room that a chart keeps free around its frame, beyond what the axes need.
struct PlotMargins {
  double top = 0;
  double right = 0;
};

/// The part of a chart that does not depend on its kind: title, axes, grid, legend, and where the
/// values go. Elements are added in drawing order.
class PlotFrame {
 public:
  /// `legend` holds the series' names; fewer than two make no legend.
  PlotFrame(const Chart& chart, AxisScale x, AxisScale y, const std::vector<std::string>& legend,
            PlotMargins margins = {});

  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }
  double x(double value) const { return left_ + x_.position(value) * (right_ - left_); }
  double y(double value) const { return bottom_ - y_.position(value) * (bottom_ - top_); }

  void add(std::string_view element) { body_ += element; }
  /// A vertical line with feet from `low` to `high` (in pixels) at `x`.
  void add_error_bar(double x, double low, double high, std::string_view color);
  /// A marker of the series' own shape with a tooltip.
  void add_marker(double x, double y, std::size_t series, double size, std::string_view tooltip);
  /// A notice in the middle of an empty chart.
  void add_notice(std::string_view text);

  /// The whole document.
  std::string str() const;

 private:
  void write_axes(const Chart& chart);
  void write_x_names();
  std::string x_name(std::size_t index) const;
  std::string y_name(double tick) const;
  double category_room() const;
  void write_legend(const std::vector<std::string>& names);

  int width_, height_;
  AxisScale x_, y_;
  double left_, right_, top_, bottom_;
  bool is_slanted_ = false;  // names below the x axis
  std::string title_;
  std::string body_;
};

/// The colour of a series, from a palette safe for all kinds of colour vision; they repeat after
/// seven, the markers' shapes after five, so that thirty-five series differ.
std::string_view series_color(std::size_t series);

}  // namespace lathe::report
