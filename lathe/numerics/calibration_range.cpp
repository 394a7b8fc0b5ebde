#include "lathe/numerics/calibration_range.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

namespace {

constexpr double kSmallestScale = 0x1p-126;
constexpr double kLargestScale = 0x1p126;

struct Range {
  double low = 0, high = 0;
};

Range finite_range(std::span<const float> values) {
  Range range;
  bool is_first = true;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    range.low = is_first ? value : std::min(range.low, double{value});
    range.high = is_first ? value : std::max(range.high, double{value});
    is_first = false;
  }
  return range;
}

float power_of_two_at_least(double scale) {
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);  // in [0.5, 1)
  return power_of_two(fraction == 0.5 ? exponent - 1 : exponent);
}

// The smallest bfloat16 number that is not below it.
float short_at_least(double scale) {
  const std::uint32_t bits = bits_of(static_cast<float>(scale));
  const float cut = float_of(bits & 0xffff0000u);
  return double{cut} >= scale ? cut : float_of((bits & 0xffff0000u) + 0x10000u);
}

bool has_short_scale(const FormatFacts& facts) {
  return facts.scale_source == ScaleSource::Given && facts.scale_bits == kShortScaleBits;
}

// The runs of a matrix that have a scale each, in the order of the scales.
std::vector<std::span<const float>> runs_of(const NumberFormat& format,
                                            const CalibrationValues& values) {
  check(std::ssize(values.values) == values.rows * values.columns,
        "as many values as the matrix has");
  const FormatFacts& facts = format.facts();
  check(facts.scale_source == ScaleSource::Given, "a format that is given its scales");
  std::vector<std::span<const float>> runs;
  if (values.values.empty()) return runs;
  if (facts.granularity == Granularity::Tensor) return {values.values};
  const std::int64_t width = facts.block_columns > 0 ? facts.block_columns : values.columns;
  for (std::int64_t r = 0; r < values.rows; ++r)
    for (std::int64_t c = 0; c < values.columns; c += width)
      runs.push_back(
          values.values.subspan(static_cast<std::size_t>(r * values.columns + c),
                                static_cast<std::size_t>(std::min(width, values.columns - c))));
  return runs;
}

template <typename Choose>
std::vector<ScaleAndZero> for_runs(const NumberFormat& format, const CalibrationValues& values,
                                   Choose choose) {
  std::vector<ScaleAndZero> scales;
  for (const std::span<const float> run : runs_of(format, values)) scales.push_back(choose(run));
  return scales;
}

Range percentile_range(std::span<const float> run, double share, bool is_two_sided) {
  std::vector<float> sorted;
  for (const float value : run)
    if (std::isfinite(value)) sorted.push_back(is_two_sided ? value : std::fabs(value));
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  const auto last = static_cast<double>(sorted.size() - 1);
  const auto at = [&](double position) {
    return double{sorted[static_cast<std::size_t>(std::llround(position * last))]};
  };
  if (!is_two_sided) return {-at(share), at(share)};
  return {at((1 - share) / 2), at((1 + share) / 2)};
}

}  // namespace

ScaleAndZero scale_for_range(const NumberFormat& format, double minimum, double maximum) {
  const FormatFacts& facts = format.facts();
  check(facts.scale_source == ScaleSource::Given, "a format that is given its scales");
  check(minimum <= maximum, "a range whose minimum is not above its maximum");
  const double low = std::min(minimum, 0.0);
  const double high = std::max(maximum, 0.0);
  if (facts.has_zero_point) {
    const double codes = facts.maximum - facts.minimum;
    const double exact = std::clamp((high - low) / codes, kSmallestScale, kLargestScale);
    const auto scale = high == low ? 1.0f : static_cast<float>(exact);
    const double zero = std::clamp(std::nearbyint(-low / double{scale}), 0.0, codes);
    return {scale, static_cast<float>(zero)};
  }
  double needed = high / facts.maximum;
  if (facts.minimum < 0) needed = std::max(needed, low / facts.minimum);
  if (needed == 0) return {};
  needed = std::clamp(needed, kSmallestScale, kLargestScale);
  if (facts.is_scale_power_of_two) return {power_of_two_at_least(needed), 0};
  return {has_short_scale(facts) ? short_at_least(needed) : static_cast<float>(needed), 0};
}

std::vector<ScaleAndZero> scales_by_range(const NumberFormat& format,
                                          const CalibrationValues& values) {
  return for_runs(format, values, [&](std::span<const float> run) {
    const Range range = finite_range(run);
    return scale_for_range(format, range.low, range.high);
  });
}

std::vector<ScaleAndZero> scales_by_percentile(const NumberFormat& format,
                                               const CalibrationValues& values, double share) {
  check(share > 0 && share <= 1, "a share above 0 and up to 1");
  return for_runs(format, values, [&](std::span<const float> run) {
    const Range range = percentile_range(run, share, format.facts().has_zero_point);
    // A format without negative numbers clips them whatever the scale is.
    return scale_for_range(format, range.low, range.high);
  });
}

std::vector<ScaleAndZero> scales_by_error(const NumberFormat& format,
                                          const CalibrationValues& values,
                                          const ErrorSearch& search) {
  std::vector<float> quantized;
  return for_runs(format, values, [&](std::span<const float> run) {
    const Range range = finite_range(run);
    quantized.resize(run.size());
    ScaleAndZero best;
    double least = -1;
    ScaleAndZero last{.scale = -1};
    for (int step = 0; step < search.steps; ++step) {
      const double ratio = 1 - (1 - search.least_ratio) * step / std::max(1, search.steps - 1);
      const ScaleAndZero tried = scale_for_range(format, range.low * ratio, range.high * ratio);
      if (tried == last) continue;  // powers of two change rarely
      last = tried;
      // One run has one scale, whatever the format's granularity is.
      format.quantize({.rows = 1,
                       .columns = std::ssize(run),
                       .x = run.data(),
                       .y = quantized.data(),
                       .scales = &tried.scale,
                       .zeros = &tried.zero});
      double error = 0;
      for (std::size_t i = 0; i < run.size(); ++i) {
        const double difference = double{quantized[i]} - run[i];
        if (std::isfinite(difference)) error += difference * difference;
      }
      if (least >= 0 && error >= least) continue;
      least = error;
      best = tried;
    }
    return best;
  });
}

}  // namespace lathe::numerics
