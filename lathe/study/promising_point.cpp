#include "lathe/study/promising_point.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "lathe/study/distance_process.h"
#include "lathe/study/space_point.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

// The process learns from so many trials, the best and the newest: its cost grows with the cube.
constexpr std::size_t kMaxTrials = 80;
// How far apart the ends of a numeric range are, when two choices are 1 apart.
constexpr double kRangeDistance = 2;

// One parameter of the space, looked up once.
struct Coordinate {
  bool is_number = false;
  NumericRange range = {};
  const std::vector<double>* column = nullptr;  // of the observations

  // The choice, or the place in the range; NaN for a parameter that a point does not have.
  double of(double value) const {
    return is_number ? kRangeDistance * (range.from_internal(value) - range.low) / range.width()
                     : value;
  }
};

using Place = std::vector<double>;

double distance(const std::vector<Coordinate>& coordinates, const Place& a, const Place& b) {
  double sum = 0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool has_a = !std::isnan(a[i]);
    const bool has_b = !std::isnan(b[i]);
    if (has_a && has_b)
      sum += coordinates[i].is_number ? std::abs(a[i] - b[i]) : 1;
    else if (has_a || has_b)
      sum += 1;  // a condition holds for one and not for the other
  }
  return sum;
}

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

double comparable_loss(const Observations& observations, std::size_t row) {
  const Observations::Row& trial = observations.rows()[row];
  const bool is_complete = trial.rank == -std::numeric_limits<double>::infinity();
  const bool is_feasible = !observations.has_constraints() || trial.violation == 0;
  return is_complete && is_feasible ? trial.loss : std::numeric_limits<double>::infinity();
}

std::size_t most_promising(std::span<const Assignment> points, const Space& space,
                           const TpeModel& model) {
  const Observations& observations = model.observations();
  const std::vector<std::size_t> rows = taught_rows(model);
  std::vector<double> losses;
  for (const std::size_t row : rows) losses.push_back(comparable_loss(observations, row));
  double worst = -std::numeric_limits<double>::infinity();
  for (const double loss : losses)
    if (std::isfinite(loss)) worst = std::max(worst, loss);
  if (!std::isfinite(worst)) return 0;  // there is nothing to improve on
  for (double& loss : losses)
    if (!std::isfinite(loss)) loss = worst;

  std::vector<Coordinate> coordinates;
  for (const SpaceParameter& parameter : space) {
    Coordinate coordinate;
    if (const auto range = numeric_range(*parameter.distribution); range && range->width() > 0)
      coordinate = {.is_number = true, .range = *range};
    const auto column = observations.find(parameter.name);
    if (column) coordinate.column = &observations.columns()[*column].values;
    coordinates.push_back(coordinate);
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<Place> places;
  for (const std::size_t row : rows) {
    Place& place = places.emplace_back();
    for (const Coordinate& each : coordinates)
      place.push_back(each.column == nullptr ? kNone : each.of((*each.column)[row]));
  }
  const std::size_t count = rows.size();
  std::vector<double> distances(count * count, 0.0);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j)
      distances[i * count + j] = distances[j * count + i] =
          distance(coordinates, places[i], places[j]);
  const DistanceProcess process(distances, clipped_losses(losses));

  std::size_t best = 0;
  double most = -1;
  std::vector<double> to_known(count);
  for (std::size_t p = 0; p < points.size(); ++p) {
    // The parameters of a point stand in the order of the space.
    Place place(space.size(), kNone);
    std::size_t next = 0;
    for (std::size_t i = 0; i < space.size() && next < points[p].size(); ++i)
      if (points[p][next].name == space[i].name)
        place[i] = coordinates[i].of(points[p][next++].value);
    for (std::size_t i = 0; i < count; ++i) to_known[i] = distance(coordinates, place, places[i]);
    const double improvement = process.expected_improvement(to_known);
    if (improvement <= most) continue;
    most = improvement;
    best = p;
  }
  return best;
}

}  // namespace lathe::study
