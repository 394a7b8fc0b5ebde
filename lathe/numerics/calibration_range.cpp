#include "lathe/numerics/calibration_range.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace lathe::numerics {
namespace {

struct Range {
  double minimum = 0, maximum = 0;
};

// The range always holds 0: it must be exact, and a sign alone says nothing about the rest.
Range full_range(std::span<const float> values) {
  Range range;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    range.minimum = std::min<double>(range.minimum, value);
    range.maximum = std::max<double>(range.maximum, value);
  }
  return range;
}

Range percentile_range(std::span<const float> values, double inside) {
  std::vector<float> sorted;
  for (const float value : values)
    if (std::isfinite(value)) sorted.push_back(value);
  if (sorted.empty()) return {};
  // Half of what is left out lies on either side.
  const auto last = static_cast<double>(sorted.size() - 1);
  const auto outside = static_cast<std::size_t>(std::floor(last * (1 - inside) / 2));
  const auto at = [&](std::size_t index) {
    const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(sorted.begin(), place, sorted.end());
    return static_cast<double>(*place);
  };
  return {std::min(0.0, at(outside)), std::max(0.0, at(sorted.size() - 1 - outside))};
}

double squared_error(const NumberFormat& format, std::span<const float> values,
                     const ScaleAndZero& scale, std::vector<float>& rounded) {
  rounded.resize(values.size());
  QuantizeArgs args;
  args.rows = 1;
  args.columns = static_cast<std::int64_t>(values.size());
  args.x = values.data();
  args.y = rounded.data();
  args.scales = &scale.scale;
  args.zeros = format.facts().has_zero_point ? &scale.zero : nullptr;
  format.quantize(args);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = static_cast<double>(rounded[i]) - static_cast<double>(values[i]);
    if (std::isfinite(error)) sum += error * error;
  }
  return sum;
}

// Shares of the full range to try. Powers of two have few; others are tried in steps of 4 %.
std::vector<double> shares_of(const NumberFormat& format) {
  std::vector<double> shares;
  if (format.facts().is_scale_power_of_two) {
    for (int k = 0; k <= 6; ++k) shares.push_back(std::ldexp(1.0, -k));
  } else {
    for (int percent = 100; percent >= 12; percent -= 4) shares.push_back(percent / 100.0);
  }
  return shares;
}

ScaleAndZero choose_one(const NumberFormat& format, std::span<const float> values,
                        const RangeRule& rule, std::vector<float>& rounded) {
  if (rule.method == RangeRule::Method::Percentile) {
    const Range range = percentile_range(values, rule.percentile);
    return scale_for_range(format, range.minimum, range.maximum);
  }
  const Range range = full_range(values);
  const ScaleAndZero all = scale_for_range(format, range.minimum, range.maximum);
  if (rule.method == RangeRule::Method::Extremes) return all;
  ScaleAndZero best = all;
  double least = std::numeric_limits<double>::infinity();
  for (const double share : shares_of(format)) {
    const ScaleAndZero candidate =
        scale_for_range(format, range.minimum * share, range.maximum * share);
    const double error = squared_error(format, values, candidate, rounded);
    if (error >= least) continue;
    least = error;
    best = candidate;
  }
  return best;
}

}  // namespace

RangeRule parse_range_rule(std::string_view text) {
  RangeRule rule;
  if (text == "mse") return rule;
  if (text == "minmax") {
    rule.method = RangeRule::Method::Extremes;
    return rule;
  }
  constexpr std::string_view kPrefix = "percentile";
  if (text.substr(0, kPrefix.size()) != kPrefix)
    throw unknown_name("range", text, {"minmax", "percentile", "mse"});
  rule.method = RangeRule::Method::Percentile;
  text.remove_prefix(kPrefix.size());
  if (text.empty()) return rule;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 1, end, rule.percentile);
  if (text.front() != '=' || parsed.ec != std::errc() || parsed.ptr != end ||
      !(rule.percentile > 0 && rule.percentile <= 1))
    fail("percentile{}: expected percentile=P with 0 < P <= 1", text);
  return rule;
}

ScaleAndZero scale_for_range(const NumberFormat& format, double minimum, double maximum) {
  const FormatFacts& facts = format.facts();
  check(facts.scale_source == ScaleSource::Given, "a format whose scales are handed in");
  minimum = std::min(minimum, 0.0);
  maximum = std::max(maximum, 0.0);
  ScaleAndZero result;
  if (facts.has_zero_point) {
    const double codes = std::ldexp(1.0, facts.element_bits) - 1;
    result.scale = static_cast<float>((maximum - minimum) / codes);
    if (!(result.scale >= std::numeric_limits<float>::min())) return {1, 0};
    result.zero = static_cast<float>(std::nearbyint(-minimum / result.scale));
    result.zero = std::clamp(result.zero, 0.0f, static_cast<float>(codes));
    return result;
  }
  double scale = maximum / facts.maximum;
  if (facts.minimum < 0) scale = std::max(scale, minimum / facts.minimum);
  if (facts.is_scale_power_of_two && scale > 0) {
    int exponent = 0;
    const double mantissa = std::frexp(scale, &exponent);  // in [0.5, 1)
    scale = std::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
  }
  result.scale = static_cast<float>(scale);
  if (!(result.scale >= std::numeric_limits<float>::min())) result.scale = 1;
  return result;
}

Scales choose_scales(const NumberFormat& format, std::span<const float> values, std::int64_t rows,
                     std::int64_t columns, const RangeRule& rule) {
  const FormatFacts& facts = format.facts();
  Scales result;
  std::vector<float> rounded;
  const auto add = [&](std::int64_t first, std::int64_t count) {
    const ScaleAndZero chosen = choose_one(
        format, values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
        rule, rounded);
    result.scales.push_back(chosen.scale);
    result.zeros.push_back(chosen.zero);
  };
  if (facts.granularity == Granularity::Tensor) {
    add(0, rows * columns);
    return result;
  }
  const std::int64_t width = facts.granularity == Granularity::Row ? columns : facts.block_columns;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; column += width)
      add(row * columns + column, std::min(width, columns - column));
  return result;
}

}  // namespace lathe::numerics
