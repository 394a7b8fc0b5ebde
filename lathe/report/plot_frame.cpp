#include "lathe/report/plot_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

constexpr std::string_view kInk = "#333333";
constexpr std::string_view kGrid = "#e6e6e6";
constexpr double kCharacterWidth = 6.6;  // of 12 px sans-serif, on the generous side
constexpr std::size_t kLongestText = 40;
constexpr std::size_t kLongestCategory = 32;
constexpr double kSlantAcross = 0.82, kSlantDown = 0.58;  // cosine and sine of 35 degrees
constexpr double kLeastCategoryRoom = 14;                 // below it, slanted names overlap

// Okabe and Ito's colours without black and with a yellow dark enough for thin lines.
constexpr std::array<std::string_view, 7> kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#56b4e9", "#e69f00", "#8a7d00"};

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, int size,
                    std::string_view more = {}) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n",
                     pixel(x), pixel(y), anchor, size, more, escape_markup(text));
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view color) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\"/>\n", pixel(x1),
                     pixel(y1), pixel(x2), pixel(y2), color);
}

std::string display(std::string_view text, std::size_t limit = kLongestText) {
  return shorten(printable_line(text), limit);
}

double text_width(std::string_view text) {
  return kCharacterWidth * static_cast<double>(num_characters(text));
}

}  // namespace

std::string_view series_color(std::size_t series) {
  return kPalette[series % kPalette.size()];
}

std::string pixel(double value) {
  const std::string text = fmt::format("{:.2f}", value);
  return text == "-0.00" ? "0.00" : text;
}

PlotFrame::PlotFrame(const Chart& chart, AxisScale x, AxisScale y,
                     const std::vector<std::string>& legend,
                     const std::vector<std::string>& categories)
    : width_(chart.width), height_(chart.height), x_(std::move(x)), y_(std::move(y)) {
  double widest_tick = 0;
  for (const double tick : y_.ticks)
    widest_tick = std::max(widest_tick, text_width(y_.tick_text(tick)));
  double widest_name = 0;
  if (legend.size() > 1)
    for (const std::string& name : legend)
      widest_name = std::max(widest_name, text_width(display(name, 24)));
  left_ = 34 + widest_tick + 8;
  right_ = width_ - 20 - (widest_name > 0 ? widest_name + 42 : 0);
  top_ = 44;
  bottom_ = height_ - 52;
  // Long category names are written at a slant and need the room below.
  double widest_category = 0;
  for (const std::string& category : categories)
    widest_category = std::max(widest_category, text_width(display(category, kLongestCategory)));
  const double room =
      (right_ - left_) / static_cast<double>(std::max<std::size_t>(1, categories.size()));
  if (widest_category > room) {
    bottom_ -= widest_category * kSlantDown;
    // The first name reaches out to the left of its bar.
    const double reach = kSlantAcross * text_width(display(categories[0], kLongestCategory));
    left_ = std::max(left_, std::min(reach - room / 2 + 8, width_ * 0.3));
  }

  title_ = escape_markup(printable_line(chart.title));
  write_axes(chart, categories);
  if (legend.size() > 1) write_legend(legend);
}

void PlotFrame::write_axes(const Chart& chart, const std::vector<std::string>& categories) {
  body_ += text_at((left_ + right_) / 2, 24, "middle", display(chart.title, 80), 16,
                   " font-weight=\"bold\"");
  for (const double tick : y_.ticks) {
    body_ += line_at(left_, y(tick), right_, y(tick), kGrid);
    body_ += text_at(left_ - 8, y(tick) + 4, "end", y_.tick_text(tick), 12);
  }
  if (categories.empty()) {
    for (const double tick : x_.ticks) {
      body_ += line_at(x(tick), top_, x(tick), bottom_, kGrid);
      body_ += line_at(x(tick), bottom_, x(tick), bottom_ + 5, kInk);
      body_ += text_at(x(tick), bottom_ + 19, "middle", x_.tick_text(tick), 12);
    }
  }
  const double room =
      (right_ - left_) / static_cast<double>(std::max<std::size_t>(1, categories.size()));
  const bool is_slanted = std::any_of(categories.begin(), categories.end(), [&](const auto& name) {
    return text_width(display(name, kLongestCategory)) > room;
  });
  const auto every = static_cast<std::size_t>(std::ceil(kLeastCategoryRoom / room));
  for (std::size_t i = 0; i < categories.size(); i += is_slanted ? every : 1) {
    const double middle = left_ + room * (static_cast<double>(i) + 0.5), base = bottom_ + 18;
    body_ += text_at(
        middle, base, is_slanted ? "end" : "middle", display(categories[i], kLongestCategory), 12,
        is_slanted ? fmt::format(" transform=\"rotate(-35 {} {})\"", pixel(middle), pixel(base))
                   : "");
  }
  body_ += line_at(left_, bottom_, right_, bottom_, kInk);
  body_ += line_at(left_, top_, left_, bottom_, kInk);
  body_ += text_at((left_ + right_) / 2, height_ - 12, "middle", display(chart.x.label, 80), 13);
  body_ += text_at(18, (top_ + bottom_) / 2, "middle", display(chart.y.label, 60), 13,
                   fmt::format(" transform=\"rotate(-90 18 {})\"", pixel((top_ + bottom_) / 2)));
}

void PlotFrame::write_legend(const std::vector<std::string>& names) {
  const auto most = static_cast<std::size_t>(std::max(1.0, (bottom_ - top_) / 20));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double at = top_ + 10 + 20 * static_cast<double>(i);
    if (i + 1 == most && names.size() > most) {
      body_ +=
          text_at(right_ + 18, at + 4, "start", fmt::format("and {} more", names.size() - i), 12);
      break;
    }
    add_marker(right_ + 24, at, i, 5, {});
    body_ += text_at(right_ + 36, at + 4, "start", display(names[i], 24), 12);
  }
}

void PlotFrame::add_error_bar(double x, double low, double high, std::string_view color) {
  low = std::min(low, bottom_);
  high = std::max(high, top_);
  body_ += line_at(x, low, x, high, color) + line_at(x - 4, low, x + 4, low, color) +
           line_at(x - 4, high, x + 4, high, color);
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
  body_ += text_at((left_ + right_) / 2, (top_ + bottom_) / 2, "middle", text, 14);
}

std::string PlotFrame::str() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" fill=\"{3}\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{4}</svg>\n",
      width_, height_, title_, kInk, body_);
}

}  // namespace lathe::report
