#include "lathe/study/math/pareto.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/study/math/infinity.h"

namespace lathe::study {

namespace {

std::vector<int> all_indices(std::size_t count) {
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Fronts of the points named by `indices`, numbered from `first`. In lexicographic order a point is
// never dominated by a later one, so each is placed once, into the first front that holds nobody
// who dominates it. Being dominated by a front implies being dominated by every earlier one, hence
// the binary search.
int place_in_fronts(std::span<const Losses> points, std::vector<int> indices, int first,
                    std::vector<int>& ranks) {
  std::stable_sort(indices.begin(), indices.end(),
                   [&](int a, int b) { return points[a] < points[b]; });
  std::vector<std::vector<int>> fronts;
  for (const int index : indices) {
    const Losses& point = points[index];
    const auto is_dominated = [&](const std::vector<int>& front) {
      // Of two objectives the second only falls along a front, so its last member decides alone.
      if (point.size() == 2) return dominates(points[front.back()], point);
      // The latest are the likeliest to dominate.
      return std::any_of(front.rbegin(), front.rend(),
                         [&](int other) { return dominates(points[other], point); });
    };
    const auto place = std::partition_point(fronts.begin(), fronts.end(), is_dominated);
    ranks[index] = first + static_cast<int>(place - fronts.begin());
    if (place == fronts.end()) {
      fronts.push_back({index});
    } else {
      place->push_back(index);
    }
  }
  return first + static_cast<int>(fronts.size());
}

}  // namespace

Losses to_losses(std::span<const double> values, std::span<const Direction> directions) {
  check(values.size() == directions.size(), "one value per direction");
  Losses losses(values.begin(), values.end());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (directions[i] == Direction::Maximize) losses[i] = -losses[i];
    if (std::isnan(losses[i])) losses[i] = kInfinity;
  }
  return losses;
}

bool dominates(std::span<const double> a, std::span<const double> b) {
  bool is_better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    is_better |= a[i] < b[i];
  }
  return is_better;
}

std::vector<int> non_dominated_ranks(std::span<const Losses> points,
                                     std::span<const double> violations) {
  check(violations.empty() || violations.size() == points.size(), "one violation per point");
  std::vector<int> ranks(points.size());
  std::vector<int> feasible;
  std::vector<int> infeasible;
  for (const int index : all_indices(points.size())) {
    const bool is_feasible = violations.empty() || violations[index] <= 0;
    (is_feasible ? feasible : infeasible).push_back(index);
  }
  int next = place_in_fronts(points, std::move(feasible), 0, ranks);

  // A violation that is not a number is as bad as any.
  const auto violation = [&](int index) {
    return std::isnan(violations[index]) ? kInfinity : violations[index];
  };
  std::sort(infeasible.begin(), infeasible.end(),
            [&](int a, int b) { return violation(a) < violation(b); });
  for (std::size_t i = 0; i < infeasible.size(); ++i) {
    if (i > 0 && violation(infeasible[i]) > violation(infeasible[i - 1])) ++next;
    ranks[infeasible[i]] = next;
  }
  return ranks;
}

std::vector<int> non_dominated(std::span<const Losses> points, std::span<const double> violations) {
  const std::vector<int> ranks = non_dominated_ranks(points, violations);
  std::vector<int> front;
  for (const int index : all_indices(points.size())) {
    if (!violations.empty() && !(violations[index] <= 0)) continue;
    if (ranks[index] == 0) front.push_back(index);
  }
  return front;
}

std::vector<double> crowding_distances(std::span<const Losses> front) {
  std::vector<double> distances(front.size(), 0.0);
  if (front.empty()) return distances;
  std::vector<int> order = all_indices(front.size());
  for (std::size_t objective = 0; objective < front[0].size(); ++objective) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return front[a][objective] < front[b][objective]; });
    const double low = front[order.front()][objective];
    const double high = front[order.back()][objective];
    if (!(high > low)) continue;  // the objective tells nobody apart
    distances[order.front()] = kInfinity;
    distances[order.back()] = kInfinity;
    for (std::size_t i = 1; i + 1 < order.size(); ++i) {
      const double gap = front[order[i + 1]][objective] - front[order[i - 1]][objective];
      const double share = gap / (high - low);
      distances[order[i]] += std::isnan(share) ? kInfinity : share;
    }
  }
  return distances;
}

}  // namespace lathe::study
