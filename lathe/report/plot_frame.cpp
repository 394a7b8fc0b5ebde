#include "lathe/report/plot_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

constexpr std::size_t kLongestCategory = 32;
constexpr double kSlantAcross = 0.82, kSlantDown = 0.58;  // cosine and sine of 35 degrees
constexpr double kLeastCategoryRoom = 14;                 // below it, slanted names overlap

// Okabe and Ito's colours without black and with a yellow dark enough for thin lines.
constexpr std::array<std::string_view, 7> kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#56b4e9", "#e69f00", "#8a7d00"};

}  // namespace

std::string_view series_color(std::size_t series) {
  return kPalette[series % kPalette.size()];
}

PlotFrame::PlotFrame(const Chart& chart, AxisScale x, AxisScale y,
                     const std::vector<std::string>& legend, PlotMargins margins)
    : width_(chart.width), height_(chart.height), x_(std::move(x)), y_(std::move(y)) {
  double widest_tick = 0;
  for (const double tick : y_.ticks) widest_tick = std::max(widest_tick, label_width(y_name(tick)));
  double widest_name = 0;
  if (legend.size() > 1)
    for (const std::string& name : legend)
      widest_name = std::max(widest_name, label_width(label_line(name, 24)));
  left_ = 34 + widest_tick + 8;
  right_ = width_ - 20 - (widest_name > 0 ? widest_name + 42 : 0) - margins.right;
  top_ = 44 + margins.top;
  bottom_ = height_ - 52;
  // Long category names are written at a slant and need the room below.
  double widest_category = 0;
  for (std::size_t i = 0; i < x_.names.size(); ++i)
    widest_category = std::max(widest_category, label_width(x_name(i)));
  const double room = category_room();
  is_slanted_ = widest_category > room;
  if (is_slanted_) {
    bottom_ -= widest_category * kSlantDown;
    // The first name reaches out to the left of its bar.
    const double reach = kSlantAcross * label_width(x_name(0));
    left_ = std::max(left_, std::min(reach - room / 2 + 8, width_ * 0.3));
  }

  title_ = chart.title;
  write_axes(chart);
  if (legend.size() > 1) write_legend(legend);
}

// Names may take a third of a small chart.
std::string PlotFrame::x_name(std::size_t index) const {
  return label_line(x_.names[index], std::min(kLongestCategory, label_limit(height_ * 0.5)));
}
std::string PlotFrame::y_name(double tick) const {
  return label_line(y_.tick_text(tick), std::min(kLongestCategory, label_limit(width_ * 0.3)));
}
double PlotFrame::category_room() const {
  return (right_ - left_) / static_cast<double>(std::max<std::size_t>(1, x_.names.size()));
}

void PlotFrame::write_axes(const Chart& chart) {
  // A bold letter of 16 px is half as wide again as one of a label.
  body_ += svg_text((left_ + right_) / 2, 24, "middle",
                    label_line(chart.title, std::min<std::size_t>(80, label_limit(width_ / 1.4))),
                    16, " font-weight=\"bold\"");
  double last_y = std::numeric_limits<double>::infinity();
  for (const double tick : y_.ticks) {
    body_ += svg_line(left_, y(tick), right_, y(tick), kGrid);
    if (last_y - y(tick) < kLeastCategoryRoom && !y_.names.empty()) continue;
    last_y = y(tick);
    body_ += svg_text(left_ - 8, y(tick) + 4, "end", y_name(tick), 12);
  }
  if (!x_.names.empty()) write_x_names();
  double last_end = -std::numeric_limits<double>::infinity();
  for (const double tick : x_.ticks) {
    if (!x_.names.empty()) break;
    body_ += svg_line(x(tick), top_, x(tick), bottom_, kGrid);
    body_ += svg_line(x(tick), bottom_, x(tick), bottom_ + 5, kInk);
    const std::string text = x_.tick_text(tick);
    if (x(tick) - label_width(text) / 2 < last_end + 4) continue;
    last_end = x(tick) + label_width(text) / 2;
    body_ += svg_text(x(tick), bottom_ + 19, "middle", text, 12);
  }
  body_ += svg_line(left_, bottom_, right_, bottom_, kInk);
  body_ += svg_line(left_, top_, left_, bottom_, kInk);
  body_ +=
      svg_text((left_ + right_) / 2, height_ - 12, "middle",
               label_line(chart.x.label, std::min<std::size_t>(80, label_limit(width_ / 1.1))), 13);
  body_ += svg_text(
      18, (top_ + bottom_) / 2, "middle",
      label_line(chart.y.label, std::min<std::size_t>(60, label_limit((bottom_ - top_) / 1.1))), 13,
      fmt::format(" transform=\"rotate(-90 18 {})\"", pixel((top_ + bottom_) / 2)));
}

void PlotFrame::write_x_names() {
  const double room = category_room();
  const auto every = static_cast<std::size_t>(std::ceil(kLeastCategoryRoom / room));
  for (std::size_t i = 0; i < x_.names.size(); i += is_slanted_ ? every : 1) {
    const double middle = left_ + room * (static_cast<double>(i) + 0.5), base = bottom_ + 18;
    body_ += svg_text(
        middle, base, is_slanted_ ? "end" : "middle", x_name(i), 12,
        is_slanted_ ? fmt::format(" transform=\"rotate(-35 {} {})\"", pixel(middle), pixel(base))
                    : "");
  }
}

void PlotFrame::write_legend(const std::vector<std::string>& names) {
  const auto most = static_cast<std::size_t>(std::max(1.0, (bottom_ - top_) / 20));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double at = top_ + 10 + 20 * static_cast<double>(i);
    if (i + 1 == most && names.size() > most) {
      body_ +=
          svg_text(right_ + 18, at + 4, "start", fmt::format("and {} more", names.size() - i), 12);
      break;
    }
    add_marker(right_ + 24, at, i, 5, {});
    body_ += svg_text(right_ + 36, at + 4, "start", label_line(names[i], 24), 12);
  }
}

void PlotFrame::add_error_bar(double x, double low, double high, std::string_view color) {
  low = std::min(low, bottom_);
  high = std::max(high, top_);
  body_ += svg_line(x, low, x, high, color) + svg_line(x - 4, low, x + 4, low, color) +
           svg_line(x - 4, high, x + 4, high, color);
}

void PlotFrame::add_marker(double x, double y, std::size_t series, double size,
                           std::string_view tooltip) {
  const std::string_view color = series_color(series);
  const std::string title =
      tooltip.empty() ? "" : fmt::format("<title>{}</title>", escape_markup(tooltip));
  const auto polygon = [&](std::initializer_list<std::array<double, 2>> corners) {
    std::string points;
    for (const auto& [dx, dy] : corners)
      points += fmt::format("{}{},{}", points.empty() ? "" : " ", pixel(x + dx), pixel(y + dy));
    body_ += fmt::format("<polygon points=\"{}\" fill=\"{}\">{}</polygon>\n", points, color, title);
  };
  const double s = size;
  switch (series % 5) {
    case 0:
      body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\">{}</circle>\n",
                           pixel(x), pixel(y), pixel(s * 0.9), color, title);
      break;
    case 1:
      polygon({{-0.8 * s, -0.8 * s}, {0.8 * s, -0.8 * s}, {0.8 * s, 0.8 * s}, {-0.8 * s, 0.8 * s}});
      break;
    case 2:
      polygon({{0, -s}, {s, 0.8 * s}, {-s, 0.8 * s}});
      break;
    case 3:
      polygon({{0, -1.1 * s}, {1.1 * s, 0}, {0, 1.1 * s}, {-1.1 * s, 0}});
      break;
    default:
      polygon({{0, s}, {s, -0.8 * s}, {-s, -0.8 * s}});
      break;
  }
}

void PlotFrame::add_notice(std::string_view text) {
  body_ += svg_text((left_ + right_) / 2, (top_ + bottom_) / 2, "middle", text, 14);
}

std::string PlotFrame::str() const {
  return svg_document(width_, height_, title_, body_);
}

}  // namespace lathe::report
