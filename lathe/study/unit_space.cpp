#include "lathe/study/unit_space.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

double place(const NumericRange& range, double position) {
  return range.width() > 0 ? std::clamp((position - range.low) / range.width(), 0.0, 1.0) : 0.5;
}

bool is_same(const DistributionPtr& a, const DistributionPtr& b) {
  return a == b || *a == *b;
}

}  // namespace

double to_unit(const Distribution& distribution, double internal) {
  if (const auto cell = unit_cell(distribution, internal)) return (cell->low + cell->high) / 2;
  const NumericRange range = *numeric_range(distribution);
  return place(range, range.from_internal(internal));
}

double from_unit(const Distribution& distribution, double unit) {
  unit = std::clamp(unit, 0.0, 1.0);
  if (const auto count = static_cast<double>(num_choices(distribution)); count > 0)
    return std::min(std::floor(unit * count), count - 1);
  const NumericRange range = *numeric_range(distribution);
  return range.to_internal(range.low + unit * range.width());
}

std::optional<Cell> unit_cell(const Distribution& distribution, double internal) {
  if (const auto count = static_cast<double>(num_choices(distribution)); count > 0)
    return Cell{internal / count, (internal + 1) / count};
  const NumericRange range = *numeric_range(distribution);
  if (!range.step) return {};
  const double half = *range.step / 2;
  return Cell{place(range, range.from_internal(internal - half)),
              place(range, range.from_internal(internal + half))};
}

bool is_discrete(const Distribution& distribution) {
  return num_choices(distribution) > 0 || numeric_range(distribution)->step.has_value();
}

std::optional<std::vector<double>> UnitSpace::to_unit(
    const std::vector<Parameter>& parameters) const {
  std::vector<double> point;
  for (const Coordinate& coordinate : coordinates_) {
    const auto found =
        std::find_if(parameters.begin(), parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == coordinate.name; });
    if (found == parameters.end()) return {};
    if (!is_same(found->distribution, coordinate.distribution)) return {};
    point.push_back(study::to_unit(*coordinate.distribution, found->value));
  }
  return point;
}

Assignment UnitSpace::from_unit(std::span<const double> point) const {
  check(point.size() == coordinates_.size(), "one number per coordinate");
  Assignment assignment;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Coordinate& coordinate = coordinates_[i];
    assignment.push_back({coordinate.name, coordinate.distribution,
                          study::from_unit(*coordinate.distribution, point[i])});
  }
  return assignment;
}

bool UnitSpace::operator==(const UnitSpace& other) const {
  return std::equal(coordinates_.begin(), coordinates_.end(), other.coordinates_.begin(),
                    other.coordinates_.end(), [](const Coordinate& a, const Coordinate& b) {
                      return a.name == b.name && is_same(a.distribution, b.distribution);
                    });
}

}  // namespace lathe::study
