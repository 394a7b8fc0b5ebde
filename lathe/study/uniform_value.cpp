#include "lathe/study/uniform_value.h"

#include <algorithm>
#include <cmath>

namespace lathe::study {

double NumericRange::from_internal(double internal) const {
  return is_log ? std::log(internal) : internal;
}

double NumericRange::to_internal(double position) const {
  if (!step) return std::clamp(is_log ? std::exp(position) : position, first, last);
  // Halves go to the even neighbour, as nearbyint does by default.
  if (is_log) return std::clamp(std::nearbyint(std::exp(position)), first, last);
  return std::clamp(std::nearbyint((position - first) / *step) * *step + first, first, last);
}

std::optional<NumericRange> numeric_range(const Distribution& distribution) {
  NumericRange range;
  if (const auto* number = std::get_if<FloatDistribution>(&distribution)) {
    range = {.low = number->low, .high = number->high, .is_log = number->log, .step = number->step};
  } else if (const auto* whole = std::get_if<IntDistribution>(&distribution)) {
    range = {.low = static_cast<double>(whole->low),
             .high = static_cast<double>(whole->high),
             .is_log = whole->log,
             .step = static_cast<double>(whole->step)};
  } else {
    return {};
  }
  range.first = range.low;
  range.last = range.high;
  const double half = range.step ? 0.5 * *range.step : 0;
  range.low -= half;
  range.high += half;
  if (range.is_log) {
    range.low = std::log(range.low);
    range.high = std::log(range.high);
  }
  return range;
}

std::size_t num_choices(const Distribution& distribution) {
  const auto* list = std::get_if<CategoricalDistribution>(&distribution);
  return list == nullptr ? 0 : list->choices.size();
}

double uniform_value(const Distribution& distribution, UniformSource& random) {
  if (const std::size_t count = num_choices(distribution); count > 0) {
    const double index = std::floor(random.next() * static_cast<double>(count));
    return std::min(index, static_cast<double>(count - 1));
  }
  const NumericRange range = *numeric_range(distribution);
  return range.to_internal(range.low + range.width() * random.next());
}

}  // namespace lathe::study
