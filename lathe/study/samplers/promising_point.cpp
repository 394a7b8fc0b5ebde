#include "lathe/study/samplers/promising_point.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/study/math/distance_process.h"
#include "lathe/study/samplers/expected_loss.h"
#include "lathe/study/samplers/parzen_loops.h"
#include "lathe/study/space_point.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

// The process learns from so many trials, the best and the newest: its cost grows with the cube.
constexpr std::size_t kMaxTrials = 80;
// How far apart the ends of a numeric range are, when two choices are 1 apart.
constexpr double kRangeDistance = 2;

constexpr std::uint16_t kNoCode = std::numeric_limits<std::uint16_t>::max();

// The trials that the process learns from, by parameter, and how far points are from them: 1 for
// each choice that differs and each parameter that only one of the two has, less for numbers.
class KnownTrials {
 public:
  KnownTrials(const Space& space, const Observations& observations,
              std::span<const std::size_t> rows)
      : count_(rows.size()) {
    for (const SpaceParameter& parameter : space) {
      Coordinate& coordinate = coordinates_.emplace_back();
      coordinate.range = numeric_range(*parameter.distribution);
      const auto id = observations.find(parameter.name);
      for (const std::size_t row : rows) {
        const double value =
            id ? observations.columns()[*id].values[row] : std::numeric_limits<double>::quiet_NaN();
        if (coordinate.range)
          coordinate.places.push_back(place(coordinate, value));
        else
          coordinate.codes.push_back(code(value));
      }
    }
  }

  // `values` by parameter of the space, NaN for those that the point does not have.
  void distances(std::span<const double> values, std::span<double> result) {
    matches_.assign(count_, 0);
    std::fill(result.begin(), result.end(), 0.0);
    std::uint16_t num_choices = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Coordinate& coordinate = coordinates_[i];
      if (!coordinate.range) {
        // One that both lack is no difference: it has the same code.
        count_matches(coordinate.codes, code(values[i]), matches_);
        ++num_choices;
        continue;
      }
      const double here = place(coordinate, values[i]);
      for (std::size_t k = 0; k < count_; ++k) {
        const double there = coordinate.places[k];
        const bool is_lone = std::isnan(here) != std::isnan(there);
        if (is_lone) result[k] += 1;
        if (!is_lone && !std::isnan(here)) result[k] += std::abs(here - there);
      }
    }
    for (std::size_t k = 0; k < count_; ++k) result[k] += num_choices - matches_[k];
  }

  // The values of one of the trials.
  std::vector<double> values(const Space& space, const Observations& observations,
                             std::size_t row) const {
    std::vector<double> result;
    for (const SpaceParameter& parameter : space) {
      const auto id = observations.find(parameter.name);
      result.push_back(id ? observations.columns()[*id].values[row]
                          : std::numeric_limits<double>::quiet_NaN());
    }
    return result;
  }

 private:
  struct Coordinate {
    std::optional<NumericRange> range = {};
    std::vector<std::uint16_t> codes = {};
    std::vector<double> places = {};
  };
  static std::uint16_t code(double value) {
    return std::isnan(value) ? kNoCode : static_cast<std::uint16_t>(value);
  }
  static double place(const Coordinate& coordinate, double value) {
    const NumericRange& range = *coordinate.range;
    if (range.width() <= 0) return 0;
    return kRangeDistance * (range.from_internal(value) - range.low) / range.width();
  }

  std::size_t count_;
  std::vector<Coordinate> coordinates_;
  std::vector<std::uint16_t> matches_;
};

std::vector<std::size_t> taught_rows(const TpeModel& model) {
  const Observations& observations = model.observations();
  const auto& rows = observations.rows();
  std::vector<std::size_t> result;
  for (const auto* half : {&model.halves().below, &model.halves().above})
    for (const std::size_t row : *half)
      if (!rows[row].is_running) result.push_back(row);
  if (result.size() <= kMaxTrials) return result;
  const auto middle = result.begin() + static_cast<std::ptrdiff_t>(kMaxTrials / 2);
  const auto end = result.begin() + static_cast<std::ptrdiff_t>(kMaxTrials);
  std::partial_sort(result.begin(), middle, result.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(comparable_loss(observations, a), rows[a].number) <
           std::pair(comparable_loss(observations, b), rows[b].number);
  });
  std::partial_sort(middle, end, result.end(),
                    [&](std::size_t a, std::size_t b) { return rows[a].number > rows[b].number; });
  result.resize(kMaxTrials);
  return result;
}

}  // namespace

std::size_t most_promising(std::span<const Assignment> points, const Space& space,
                           const TpeModel& model) {
  const Observations& observations = model.observations();
  const std::vector<std::size_t> rows = taught_rows(model);
  const std::vector<double> losses = expected_losses(observations, rows);
  if (losses.empty()) return 0;  // there is nothing to improve on

  KnownTrials known(space, observations, rows);
  const std::size_t count = rows.size();
  std::vector<double> distances(count * count, 0.0);
  for (std::size_t i = 0; i < count; ++i)
    known.distances(known.values(space, observations, rows[i]),
                    std::span(distances).subspan(i * count, count));
  const DistanceProcess process(distances, clipped_losses(losses));

  std::size_t best = 0;
  double most = -1;
  std::vector<double> to_known(count);
  for (std::size_t p = 0; p < points.size(); ++p) {
    // The parameters of a point stand in the order of the space.
    std::vector<double> values(space.size(), std::numeric_limits<double>::quiet_NaN());
    std::size_t next = 0;
    for (std::size_t i = 0; i < space.size() && next < points[p].size(); ++i)
      if (points[p][next].name == space[i].name) values[i] = points[p][next++].value;
    known.distances(values, to_known);
    const double improvement = process.expected_improvement(to_known);
    if (improvement <= most) continue;
    most = improvement;
    best = p;
  }
  return best;
}

}  // namespace lathe::study
