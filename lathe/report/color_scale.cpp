#include "lathe/report/color_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lathe/report/svg_elements.h"

namespace lathe::report {
namespace {

constexpr double kBarWidth = 14;
constexpr int kBarSteps = 32;

// Straw, green, sea, ink: hue turns while lightness falls. The palest still shows on white.
constexpr std::array<std::array<double, 3>, 5> kStops = {
    {{242, 221, 120}, {143, 202, 122}, {60, 158, 138}, {40, 100, 135}, {52, 26, 89}}};

double widest_tick(const Shading& shading) {
  double widest = 0;
  for (const double tick : shading.scale.ticks)
    widest = std::max(widest, label_width(label_line(shading.scale.tick_text(tick), 12)));
  return widest;
}

}  // namespace

std::string shade_color(double position) {
  if (!(position > 0)) position = 0;  // NaN as well
  const double place = std::min(position, 1.0) * static_cast<double>(kStops.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), kStops.size() - 2);
  const double share = place - static_cast<double>(first);
  std::array<int, 3> color = {};
  for (std::size_t i = 0; i < 3; ++i)
    color[i] = static_cast<int>(
        std::lround(kStops[first][i] + share * (kStops[first + 1][i] - kStops[first][i])));
  return fmt::format("#{:02x}{:02x}{:02x}", color[0], color[1], color[2]);
}

std::string Shading::color(double value) const {
  const double position = scale.position(value);
  return shade_color(is_reversed ? 1 - position : position);
}

double color_bar_width(const Shading& shading) {
  return 18 + kBarWidth + 6 + widest_tick(shading) + 24;
}

std::string color_bar(const Shading& shading, double left, double top, double bottom) {
  const double bar = left + 18;
  std::string body;
  const double step = (bottom - top) / kBarSteps;
  for (int i = 0; i < kBarSteps; ++i) {
    const double middle = (i + 0.5) / kBarSteps;
    // Half a pixel more than the step: no white lines between.
    body += svg_rectangle(bar, bottom - step * (i + 1), kBarWidth, step + (i == 0 ? 0 : 0.5),
                          shade_color(shading.is_reversed ? 1 - middle : middle));
  }
  for (const double tick : shading.scale.ticks) {
    const double position = shading.scale.position(tick);
    if (position < -1e-9 || position > 1 + 1e-9) continue;
    const double y = bottom - position * (bottom - top);
    body += svg_line(bar + kBarWidth, y, bar + kBarWidth + 4, y, kInk);
    body += svg_text(bar + kBarWidth + 7, y + 4, "start",
                     label_line(shading.scale.tick_text(tick), 12), 12);
  }
  const double x = bar + kBarWidth + 6 + widest_tick(shading) + 18, y = (top + bottom) / 2;
  return body + svg_text(x, y, "middle", label_line(shading.label, label_limit(bottom - top)), 13,
                         fmt::format(" transform=\"rotate(-90 {} {})\"", pixel(x), pixel(y)));
}

}  // namespace lathe::report
