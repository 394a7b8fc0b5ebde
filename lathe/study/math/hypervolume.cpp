#include "lathe/study/math/hypervolume.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "lathe/core/error.h"

namespace lathe::study {

namespace {

// The reference shrinks with the points while dimensions are sliced off, so both are passed with
// the number of leading coordinates that still count.
double volume(std::vector<Losses>& points, const Losses& reference, int dimension);

// The staircase from left to right: each step adds a rectangle below the last one.
double area(std::vector<Losses>& points, const Losses& reference) {
  std::sort(points.begin(), points.end());
  double sum = 0;
  double floor = reference[1];
  for (const Losses& point : points) {
    if (point[1] >= floor) continue;
    sum += (reference[0] - point[0]) * (floor - point[1]);
    floor = point[1];
  }
  return sum;
}

// A staircase in the first two coordinates that only grows while the third rises: its area times
// the way to the next point.
double volume_of_three(std::vector<Losses>& points, const Losses& reference) {
  std::sort(points.begin(), points.end(),
            [](const Losses& a, const Losses& b) { return a[2] < b[2]; });
  const double infinity = std::numeric_limits<double>::infinity();
  // x to y, both strictly monotonic, between two guards that are never removed.
  std::map<double, double> stairs = {{-infinity, reference[1]}, {reference[0], -infinity}};
  double sum = 0;
  double covered = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = points[i][0];
    const double y = points[i][1];
    auto next = stairs.upper_bound(x);
    double floor = std::prev(next)->second;
    if (y < floor) {
      // Walk over the steps that the point covers, adding the strip under each.
      double left = x;
      if (std::prev(next)->first == x) --next;
      while (next->second >= y) {
        covered += (next->first - left) * (floor - y);
        left = next->first;
        floor = next->second;
        next = stairs.erase(next);
      }
      covered += (next->first - left) * (floor - y);
      stairs[x] = y;
    }
    const double top = i + 1 < points.size() ? points[i + 1][2] : reference[2];
    if (top > points[i][2]) sum += covered * (top - points[i][2]);
  }
  return sum;
}

// Keeps one of each set of points that the first `dimension` coordinates cannot tell from better
// ones; without this the slices below would keep all points through every dimension.
void keep_non_dominated(std::vector<Losses>& points, int dimension) {
  std::sort(points.begin(), points.end());
  std::vector<Losses> kept;
  for (Losses& point : points) {
    const auto is_covered = [&](const Losses& other) {
      for (int i = 0; i < dimension; ++i)
        if (other[i] > point[i]) return false;
      return true;
    };
    if (std::none_of(kept.begin(), kept.end(), is_covered)) kept.push_back(std::move(point));
  }
  points = std::move(kept);
}

// From the worst of the last coordinate to the best: what a point has for itself is its box less
// what the better ones take of it, and they all take it over the whole depth, so that one
// coordinate falls away.
double volume_by_slices(std::vector<Losses>& points, const Losses& reference, int dimension) {
  const int last = dimension - 1;
  keep_non_dominated(points, dimension);
  std::sort(points.begin(), points.end(),
            [&](const Losses& a, const Losses& b) { return a[last] > b[last]; });
  double sum = 0;
  std::vector<Losses> limited;
  for (std::size_t i = 0; i < points.size(); ++i) {
    double box = 1;
    for (int k = 0; k < last; ++k) box *= reference[k] - points[i][k];
    limited.clear();
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      Losses corner(last);
      for (int k = 0; k < last; ++k) corner[k] = std::max(points[i][k], points[j][k]);
      limited.push_back(std::move(corner));
    }
    sum += (reference[last] - points[i][last]) * (box - volume(limited, reference, last));
  }
  return sum;
}

double volume(std::vector<Losses>& points, const Losses& reference, int dimension) {
  if (points.empty()) return 0;
  if (dimension == 1) {
    const auto best = std::min_element(points.begin(), points.end());
    return reference[0] - (*best)[0];
  }
  if (dimension == 2) return area(points, reference);
  if (dimension == 3) return volume_of_three(points, reference);
  return volume_by_slices(points, reference, dimension);
}

bool is_better_everywhere(const Losses& point, const Losses& reference) {
  for (std::size_t i = 0; i < point.size(); ++i)
    if (!(point[i] < reference[i])) return false;
  return true;
}

double box_volume(const Losses& point, const Losses& reference) {
  double box = 1;
  for (std::size_t i = 0; i < point.size(); ++i) box *= std::max(0.0, reference[i] - point[i]);
  return box;
}

// What `point` adds to the volume of `chosen`: its box less the part the chosen ones cover.
double gain(const Losses& point, const std::vector<Losses>& chosen, const Losses& reference) {
  if (!is_better_everywhere(point, reference)) return 0;
  std::vector<Losses> covered;
  for (const Losses& other : chosen) {
    Losses corner(point.size());
    for (std::size_t k = 0; k < point.size(); ++k) corner[k] = std::max(point[k], other[k]);
    if (is_better_everywhere(corner, reference)) covered.push_back(std::move(corner));
  }
  const int dimension = static_cast<int>(point.size());
  return std::max(0.0, box_volume(point, reference) - volume(covered, reference, dimension));
}

}  // namespace

double hypervolume(std::span<const Losses> points, const Losses& reference) {
  std::vector<Losses> inside;
  for (const Losses& point : points) {
    check(point.size() == reference.size(), "points and reference of one dimension");
    if (is_better_everywhere(point, reference)) inside.push_back(point);
  }
  return volume(inside, reference, static_cast<int>(reference.size()));
}

std::vector<double> hypervolume_contributions(std::span<const Losses> points,
                                              const Losses& reference) {
  std::vector<double> contributions;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<Losses> others(points.begin(), points.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    contributions.push_back(gain(points[i], others, reference));
  }
  return contributions;
}

std::vector<int> select_by_hypervolume(std::span<const Losses> points, int count,
                                       const Losses& reference) {
  // A gain only falls while others are chosen, so an old one bounds the new one from above and
  // most are never computed again.
  struct Candidate {
    double gain;
    int index;
    int num_chosen;  // when the gain was computed
    bool operator<(const Candidate& other) const {
      return gain != other.gain ? gain < other.gain : index > other.index;
    }
  };
  std::priority_queue<Candidate> queue;
  for (int i = 0; i < static_cast<int>(points.size()); ++i)
    queue.push({box_volume(points[i], reference), i, 0});

  std::vector<int> selected;
  std::vector<Losses> chosen;
  while (static_cast<int>(selected.size()) < count && !queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    const int num_chosen = static_cast<int>(selected.size());
    if (best.num_chosen < num_chosen) {
      best.gain = std::min(best.gain, gain(points[best.index], chosen, reference));
      best.num_chosen = num_chosen;
      queue.push(best);
      continue;
    }
    selected.push_back(best.index);
    chosen.push_back(points[best.index]);
  }
  return selected;
}

}  // namespace lathe::study
