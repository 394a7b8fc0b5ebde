#include "lathe/report/named_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/report/plot_axis.h"
#include "lathe/report/plot_frame.h"
#include "lathe/report/svg_elements.h"

namespace lathe::report {
namespace {

constexpr double kRowHeight = 24, kBarsTop = 44, kBarsFoot = 52, kValueRoom = 56;
constexpr std::size_t kLongestName = 56;

}  // namespace

std::string named_bars(const std::string& title, const std::string& label,
                       const std::vector<std::pair<std::string, double>>& bars, int width) {
  double widest = 0, highest = 0;
  for (const auto& [name, value] : bars) {
    widest = std::max(widest, label_width(label_line(name, kLongestName)));
    if (std::isfinite(value)) highest = std::max(highest, value);
  }
  const AxisScale scale = linear_scale(0, highest > 0 ? highest : 1, 5, false);
  const double left = 20 + widest + 8, right = width - 20 - kValueRoom;
  const double bottom =
      kBarsTop + kRowHeight * static_cast<double>(std::max<std::size_t>(bars.size(), 2));
  const auto x = [&](double value) { return left + scale.position(value) * (right - left); };

  std::string body =
      svg_text(width / 2.0, 24, "middle", label_line(title, label_limit(width / 1.4)), 16,
               " font-weight=\"bold\"");
  for (const double tick : scale.ticks) {
    body += svg_line(x(tick), kBarsTop, x(tick), bottom, kGrid);
    body += svg_text(x(tick), bottom + 19, "middle", scale.tick_text(tick), 12);
  }
  double y = kBarsTop;
  for (const auto& [name, value] : bars) {
    body += svg_text(left - 8, y + kRowHeight / 2 + 4, "end", label_line(name, kLongestName), 12);
    const double end = std::isfinite(value) ? x(std::max(value, 0.0)) : left;
    body += svg_rectangle(left, y + 4, end - left, kRowHeight - 8, series_color(0),
                          fmt::format("{}: {}", name, short_number(value)));
    body += svg_text(end + 6, y + kRowHeight / 2 + 4, "start",
                     std::isfinite(value) ? short_number(value, 3) : "unknown", 12);
    y += kRowHeight;
  }
  if (bars.empty()) body += svg_text((left + right) / 2, kBarsTop + 28, "middle", "no data", 14);
  body += svg_line(left, kBarsTop, left, bottom, kInk);
  body += svg_text((left + right) / 2, bottom + 40, "middle",
                   label_line(label, label_limit(width / 1.1)), 13);
  return svg_document(width, static_cast<int>(bottom + kBarsFoot), title, body);
}

}  // namespace lathe::report
