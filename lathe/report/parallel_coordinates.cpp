#include "lathe/report/parallel_coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/report/svg_elements.h"

namespace lathe::report {
namespace {

constexpr double kAxesTop = 98, kAxesFoot = 24, kGap = 26,
                 kGapSpread = 12,  // below an axis: where items without a value pass
    kLeft = 70, kSpacing = 110;
// A rim of white keeps text readable above lines.
constexpr const char* kRim = " stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\"";
constexpr double kBold = 1.1;  // how much wider bold letters are
constexpr double kLeastTickRoom = 15;
constexpr double kSpread = 0.5;  // of a category's room that its lines fill

// A number from 0 to 1 that looks random and is the same everywhere.
double scatter(std::size_t index) {
  const double x = static_cast<double>(index) * 0.6180339887498949;
  return x - std::floor(x);
}

std::string draw_axis(const ParallelCoordinates::Upright& axis, double x, double bottom,
                      std::size_t name_limit, bool is_high) {
  std::string body = svg_line(x, kAxesTop, x, bottom, kInk);
  const std::string name = label_line(axis.name, name_limit);
  // The name of the first axis may be wider than the margin.
  const double middle = std::max(x, 6 + label_width(name) * kBold / 2);
  body += svg_text(middle, is_high ? kAxesTop - 34 : kAxesTop - 16, "middle", name, 12,
                   " font-weight=\"bold\"");
  double last = std::numeric_limits<double>::infinity();
  for (const double tick : axis.scale.ticks) {
    const double y = bottom - axis.scale.position(tick) * (bottom - kAxesTop);
    if (last - y < kLeastTickRoom) continue;
    last = y;
    const std::string text = label_line(axis.scale.tick_text(tick), 14);
    body += svg_line(x - 4, y, x, y, kInk);
    body += svg_text(x - 7, y + 4, "end", text, 11, kRim);
  }
  return body;
}

}  // namespace

std::string parallel_coordinates(const ParallelCoordinates& chart) {
  const std::size_t count = chart.axes.size();
  const double bar = color_bar_width(chart.shading);
  const double least_width = 720;
  const double spacing =
      count < 2
          ? kSpacing
          : std::max(kSpacing, (least_width - kLeft - bar - 50) / static_cast<double>(count - 1));
  const double last = kLeft + spacing * static_cast<double>(std::max<std::size_t>(count, 1) - 1);
  const int width = static_cast<int>(std::max(least_width, last + 40 + bar));
  std::vector<bool> has_gap(count, false);
  for (const ParallelCoordinates::Item& item : chart.items)
    for (std::size_t axis = 0; axis < std::min(count, item.values.size()); ++axis)
      if (!std::isfinite(item.values[axis])) has_gap[axis] = true;
  const bool has_gaps = std::ranges::find(has_gap, true) != has_gap.end();
  const double bottom = chart.height - kAxesFoot - (has_gaps ? kGap : 0);
  const auto x = [&](std::size_t axis) { return kLeft + spacing * static_cast<double>(axis); };
  const double many = static_cast<double>(chart.items.size());
  const double opacity = std::clamp(12 / std::sqrt(std::max(many, 1.0)), 0.12, 0.8);
  const double line_width = many <= 100 ? 1.6 : many <= 1000 ? 1.0 : 0.6;

  std::string body =
      svg_text(width / 2.0, 24, "middle", label_line(chart.title, label_limit(width / 1.4)), 16,
               " font-weight=\"bold\"");
  if (!chart.subtitle.empty())
    body += svg_text(width / 2.0, 42, "middle", label_line(chart.subtitle, label_limit(width)), 12);
  for (std::size_t i = 0; i < chart.items.size(); ++i) {
    const ParallelCoordinates::Item& item = chart.items[i];
    check(item.values.size() == count, "a value for each axis");
    std::string path;
    for (std::size_t axis = 0; axis < count; ++axis) {
      double value = item.values[axis];
      const AxisScale& scale = chart.axes[axis].scale;
      const double spread = scatter(i * 31 + axis * 17) - 0.5;
      if (!scale.names.empty()) value += spread * kSpread;
      const double y = std::isfinite(value) ? bottom - std::clamp(scale.position(value), 0.0, 1.0) *
                                                           (bottom - kAxesTop)
                                            : bottom + kGap + spread * kGapSpread;
      path += fmt::format("{}{:.1f} {:.1f}", axis == 0 ? "M" : "L", x(axis), y);
      if (count == 1) path += "h0";  // a dot
    }
    if (path.empty()) continue;
    body += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2g}\" "
        "stroke-linecap=\"round\" stroke-linejoin=\"round\" opacity=\"{:.2f}\"/>\n",
        path, chart.shading.color(item.shade), line_width, opacity);
  }
  // Names stand on two levels, so that each has the room of two axes.
  const bool is_staggered = count > 2;
  for (std::size_t axis = 0; axis < count; ++axis)
    body +=
        draw_axis(chart.axes[axis], x(axis), bottom,
                  label_limit((is_staggered ? 2 : 1) * spacing / kBold - 8),
                  is_staggered && axis % 2 == 1) +
        (has_gap[axis] ? svg_text(x(axis) - 7, bottom + kGap + 4, "end", "none", 11, kRim) : "");
  if (count == 0 || chart.items.empty())
    body += svg_text(width / 2.0, (kAxesTop + bottom) / 2, "middle", "no data", 14);
  else
    body += color_bar(chart.shading, last + 10, kAxesTop, bottom);
  return svg_document(width, chart.height, chart.title, body);
}

}  // namespace lathe::report
