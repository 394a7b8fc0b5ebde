#include "lathe/study/tpe_candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "lathe/study/keyed_random.h"
#include "lathe/study/space_point.h"

namespace lathe::study {

namespace {

// So many points are looked at before the search for wanted ones is given up.
constexpr int kMaxLooks = 2000;
// Neighbours beyond so many are left out: with hundreds of parameters one change tells little.
constexpr std::size_t kMaxNeighbors = 256;

}  // namespace

std::vector<double> neighbor_values(const Distribution& distribution, double value) {
  std::vector<double> result;
  if (const std::size_t count = num_choices(distribution); count > 0) {
    for (std::size_t choice = 0; choice < count; ++choice)
      if (value != static_cast<double>(choice)) result.push_back(static_cast<double>(choice));
    return result;
  }
  const NumericRange range = *numeric_range(distribution);
  if (!range.step) return result;
  for (const double other : {value - *range.step, value + *range.step})
    if (other >= range.first && other <= range.last) result.push_back(other);
  return result;
}

std::vector<std::size_t> best_rows(const TpeModel& model, std::size_t count) {
  const auto& rows = model.observations().rows();
  // Good trials alone may be fewer than asked for.
  std::vector<std::size_t> best = model.halves().below;
  if (best.size() < count)
    best.insert(best.end(), model.halves().above.begin(), model.halves().above.end());
  count = std::min(count, best.size());
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count), best.end(),
                    [&](std::size_t a, std::size_t b) {
                      return std::tuple(rows[a].rank, rows[a].loss, rows[a].number) <
                             std::tuple(rows[b].rank, rows[b].loss, rows[b].number);
                    });
  best.resize(count);
  return best;
}

TpeCandidates::TpeCandidates(const TpeModel& model, const Space& space, const Proposal& proposal,
                             std::size_t num_elites)
    : space_(space) {
  make_groups(model);
  for (Group& group : groups_) {
    const TpeDensities densities = model.densities(group.axes, group.axes.size() > 1);
    KeyedRandom random(proposal, "tpe:" + group.axes.front().name);
    group.points = densities.good.sample(random, model.options().candidates);
    add_neighbors(model, group, num_elites);
    const std::vector<double> scores = densities.scores(group.points);
    group.ranking.resize(scores.size());
    std::iota(group.ranking.begin(), group.ranking.end(), std::size_t{0});
    std::stable_sort(group.ranking.begin(), group.ranking.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    for (const std::size_t i : group.ranking)
      group.losses.push_back(scores[group.ranking.front()] - scores[i]);
  }
}

void TpeCandidates::make_groups(const TpeModel& model) {
  const Observations& observations = model.observations();
  std::map<std::size_t, std::size_t> known_group;  // column to the observations' group
  for (std::size_t i = 0; i < observations.groups().size(); ++i)
    for (const std::size_t id : observations.groups()[i]) known_group[id] = i;
  std::map<std::size_t, std::size_t> group_of;  // the observations' group to ours
  for (const SpaceParameter& parameter : space_) {
    if (is_single(*parameter.distribution)) {
      places_.emplace_back(static_cast<std::size_t>(-1), 0);
      continue;
    }
    // A parameter that no trial has had yet is alone.
    std::size_t group = groups_.size();
    const auto column = observations.find(parameter.name);
    const auto known = column ? known_group.find(*column) : known_group.end();
    if (known != known_group.end())
      group = group_of.try_emplace(known->second, group).first->second;
    if (group == groups_.size()) groups_.emplace_back();
    places_.emplace_back(group, groups_[group].axes.size());
    groups_[group].axes.push_back({parameter.name, parameter.distribution});
  }
}

void TpeCandidates::add_neighbors(const TpeModel& model, Group& group,
                                  std::size_t num_elites) const {
  const Observations& observations = model.observations();
  std::vector<double> point(group.axes.size());
  std::size_t num_added = 0;
  for (const std::size_t row : best_rows(model, num_elites)) {
    bool has_all = true;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      const auto column = observations.find(group.axes[axis].name);
      point[axis] = column ? observations.columns()[*column].values[row] : std::nan("");
      if (!contains(*group.axes[axis].distribution, point[axis])) has_all = false;
    }
    if (!has_all) continue;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      for (const double value : neighbor_values(*group.axes[axis].distribution, point[axis])) {
        if (++num_added > kMaxNeighbors) return;
        for (std::size_t j = 0; j < point.size(); ++j)
          group.points[j].push_back(j == axis ? value : point[j]);
      }
    }
  }
}

Assignment TpeCandidates::point(const Ranks& ranks, std::vector<bool>& is_active) const {
  Assignment result;
  is_active.assign(groups_.size(), false);
  for (std::size_t i = 0; i < space_.size(); ++i) {
    const SpaceParameter& parameter = space_[i];
    if (!is_present(parameter, result)) continue;
    const auto [index, axis] = places_[i];
    double value = 0;
    if (index < groups_.size()) {
      const Group& group = groups_[index];
      is_active[index] = true;
      value = group.points[axis][group.ranking[ranks[index]]];
    } else if (const auto range = numeric_range(*parameter.distribution)) {
      value = range->first;
    }
    result.push_back({parameter.name, parameter.distribution, value});
  }
  return result;
}

std::vector<Assignment> TpeCandidates::best(
    std::size_t count, const std::function<bool(const Assignment&)>& is_wanted) const {
  std::vector<Assignment> result;
  std::set<std::uint64_t> taken;  // points, which samples may repeat
  std::set<Ranks> queued;
  using Entry = std::pair<double, Ranks>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, Ranks(groups_.size(), 0)});
  std::vector<bool> is_active;
  for (int looks = 0; looks < kMaxLooks && !queue.empty() && result.size() < count; ++looks) {
    const auto [loss, ranks] = queue.top();
    queue.pop();
    Assignment candidate = point(ranks, is_active);
    // What a condition switches off cannot be given up for a better rank elsewhere.
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!is_active[i] || ranks[i] + 1 >= groups_[i].ranking.size()) continue;
      Ranks next = ranks;
      const double more = groups_[i].losses[ranks[i] + 1] - groups_[i].losses[ranks[i]];
      ++next[i];
      if (queued.insert(next).second) queue.push({loss + more, std::move(next)});
    }
    if (taken.insert(point_key(candidate)).second && is_wanted(candidate))
      result.push_back(std::move(candidate));
  }
  return result;
}

}  // namespace lathe::study
