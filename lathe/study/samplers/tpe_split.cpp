#include "lathe/study/samplers/tpe_split.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lathe/study/math/hypervolume.h"
#include "lathe/study/math/pareto.h"

namespace lathe::study {

namespace {

constexpr double kTiny = 1e-12;

using Rows = std::vector<Observations::Row>;
using Indices = std::vector<std::size_t>;

// A tenth beyond the worst in every objective, whatever its sign.
Losses reference_point(const std::vector<Losses>& points) {
  Losses reference = points.front();
  for (const Losses& point : points)
    for (std::size_t i = 0; i < point.size(); ++i) reference[i] = std::max(reference[i], point[i]);
  for (double& worst : reference) {
    worst = std::max(1.1 * worst, 0.9 * worst);
    if (worst == 0) worst = kTiny;
  }
  return reference;
}

std::vector<Losses> losses_of(const Rows& rows, const Indices& indices) {
  std::vector<Losses> result;
  for (const std::size_t index : indices) result.push_back(rows[index].losses);
  return result;
}

// Whole fronts while they fit, then the best of the next.
Indices best_by_fronts(const Rows& rows, const Indices& candidates, std::size_t count) {
  const std::vector<Losses> points = losses_of(rows, candidates);
  const std::vector<int> ranks = non_dominated_ranks(points);
  Indices best;
  for (int rank = 0; best.size() < count; ++rank) {
    Indices front;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (ranks[i] == rank) front.push_back(candidates[i]);
    const std::size_t missing = count - best.size();
    if (front.size() <= missing) {
      best.insert(best.end(), front.begin(), front.end());
      continue;
    }
    const std::vector<Losses> front_points = losses_of(rows, front);
    for (const int chosen : select_by_hypervolume(front_points, static_cast<int>(missing),
                                                  reference_point(front_points)))
      best.push_back(front[static_cast<std::size_t>(chosen)]);
  }
  return best;
}

// What each point adds to the hypervolume, the largest being 1; next to nothing for points that
// break constraints.
std::vector<double> hypervolume_weights(const Rows& rows, const Indices& below,
                                        bool has_constraints) {
  std::vector<double> weights(below.size(), kTiny);
  Indices feasible;
  std::vector<Losses> points;
  for (std::size_t i = 0; i < below.size(); ++i) {
    if (has_constraints && rows[below[i]].violation > 0) continue;
    feasible.push_back(i);
    points.push_back(rows[below[i]].losses);
  }
  if (points.empty()) return weights;
  if (points.size() == 1) {
    weights[feasible.front()] = 1;
    return weights;
  }
  std::vector<double> lost = hypervolume_contributions(points, reference_point(points));
  for (double& each : lost) each += kTiny;
  const double largest = *std::max_element(lost.begin(), lost.end());
  for (std::size_t i = 0; i < feasible.size(); ++i)
    weights[feasible[i]] = std::clamp(lost[i] / largest, 0.0, 1.0);
  return weights;
}

}  // namespace

Split split(const Observations& observations, std::size_t num_below, bool weigh_by_hypervolume,
            int first_number) {
  const Rows& rows = observations.rows();
  const bool has_constraints = observations.has_constraints();
  const bool has_many_objectives = !rows.empty() && !rows.front().losses.empty();
  const auto violation = [&](std::size_t row) {
    return has_constraints ? rows[row].violation : 0.0;
  };
  const auto by_number = [&](std::size_t a, std::size_t b) {
    return rows[a].number < rows[b].number;
  };

  Indices order;
  for (const std::size_t row : observations.by_number())
    if (rows[row].number >= first_number) order.push_back(row);
  num_below = std::min(num_below, order.size());
  Indices below;
  bool keeps_order = true;
  if (has_many_objectives) {
    Indices feasible;
    for (const std::size_t row : order)
      if (violation(row) == 0) feasible.push_back(row);
    if (feasible.size() >= num_below) {
      below = best_by_fronts(rows, feasible, num_below);
      keeps_order = has_constraints;
    }
  }
  if (below.empty() && num_below > 0) {
    // What violates is compared by how much alone, the earlier of two equal ones first.
    const auto is_better = [&](std::size_t a, std::size_t b) {
      const double violation_a = violation(a);
      const double violation_b = violation(b);
      if (violation_a != violation_b) return violation_a < violation_b;
      if (violation_a > 0) return rows[a].number < rows[b].number;
      return std::tie(rows[a].rank, rows[a].loss, rows[a].number) <
             std::tie(rows[b].rank, rows[b].loss, rows[b].number);
    };
    below = order;
    std::nth_element(below.begin(), below.begin() + static_cast<std::ptrdiff_t>(num_below) - 1,
                     below.end(), is_better);
    below.resize(num_below);
  }
  if (keeps_order) std::sort(below.begin(), below.end(), by_number);

  Split result;
  std::vector<bool> is_below(rows.size(), false);
  for (const std::size_t row : below) is_below[row] = true;
  for (const std::size_t row : order)
    if (!is_below[row]) result.above.push_back(row);
  result.below = std::move(below);
  if (has_many_objectives && weigh_by_hypervolume)
    result.below_weights = hypervolume_weights(rows, result.below, has_constraints);
  return result;
}

}  // namespace lathe::study
