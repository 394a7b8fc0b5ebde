#include "lathe/report/plot_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::report {
namespace {

// The one of 1, 2, 5 and 10 times a power of ten that gives about as many ticks as asked for.
double nice_step(double span, int num_ticks) {
  const double raw = span / std::max(1, num_ticks);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double digit = raw / power;
  return power * (digit < 1.25 ? 1 : digit < 2.5 ? 2 : digit < 6 ? 5 : 10);
}

}  // namespace

double AxisScale::position(double value) const {
  if (is_logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::string AxisScale::tick_text(double tick) const {
  if (!names.empty()) {
    const double index = std::clamp(tick, 0.0, static_cast<double>(names.size() - 1));
    return names[static_cast<std::size_t>(std::lround(index))];
  }
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  // Rounding noise of a multiple of the step must not show, nor print as -0.
  if (!is_logarithmic && std::abs(tick) < step * 1e-9) return "0";
  return short_number(tick, is_logarithmic ? 3 : 6);
}

AxisScale linear_scale(double low, double high, int num_ticks, bool round_outwards) {
  check(std::isfinite(low) && std::isfinite(high) && low <= high, "a finite range");
  // One value only, or so little around it that the ticks would all print alike.
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high)) || high == low) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= room;
    high += room;
  }
  const double step = nice_step(high - low, num_ticks);
  AxisScale scale;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  scale.low = round_outwards ? first * step : low;
  scale.high = round_outwards ? last * step : high;
  for (double k = first; k <= last; ++k) {
    const double tick = k * step, slack = step * 1e-9;
    if (tick >= scale.low - slack && tick <= scale.high + slack) scale.ticks.push_back(tick);
  }
  return scale;
}

AxisScale logarithmic_scale(double low, double high, int num_ticks) {
  check(std::isfinite(high) && low > 0 && low <= high, "a positive finite range");
  if (high / low < 1.05) {
    low /= 2;
    high *= 2;
  }
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  AxisScale scale{.low = low, .high = high, .is_logarithmic = true};
  const int every = std::max(1, (last - first + num_ticks - 1) / std::max(1, num_ticks));
  const bool is_short = std::log10(high / low) < 2;
  for (int exponent = first; exponent <= last; exponent += is_short ? 1 : every)
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit != 1 && !is_short) continue;
      const double tick = digit * std::pow(10.0, exponent);
      scale.ticks.push_back(tick);
    }
  // The range ends on the ticks that enclose it, so that no point lies on the frame's corner.
  double below = low, above = high;
  for (const double tick : scale.ticks) {
    if (tick <= low * (1 + 1e-9)) below = tick;
    if (tick >= high * (1 - 1e-9)) {
      above = tick;
      break;
    }
  }
  scale.low = below;
  scale.high = above;
  std::erase_if(scale.ticks, [&](double tick) {
    return tick < scale.low * (1 - 1e-9) || tick > scale.high * (1 + 1e-9);
  });
  return scale;
}

AxisScale category_scale(std::vector<std::string> names) {
  check(!names.empty(), "a category to draw");
  AxisScale scale;
  scale.low = -0.5;
  scale.high = static_cast<double>(names.size()) - 0.5;
  for (std::size_t i = 0; i < names.size(); ++i) scale.ticks.push_back(static_cast<double>(i));
  scale.names = std::move(names);
  return scale;
}

std::string short_number(double value, int digits) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 1e-4 || size >= 1e7) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    // "1e-05" as "1e-5".
    if (const std::size_t at = text.find('e'); at != std::string::npos) {
      std::size_t from = at + 1;
      if (text[from] == '+')
        text.erase(from, 1);
      else
        ++from;
      while (from + 1 < text.size() && text[from] == '0') text.erase(from, 1);
    }
    return text;
  }
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  std::string text = fmt::format("{:.{}f}", value, std::max(0, digits - before));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text;
}

}  // namespace lathe::report
