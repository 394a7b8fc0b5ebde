#include "lathe/study/samplers/tpe_candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "lathe/study/math/keyed_random.h"
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
    : model_(model), space_(space), proposal_(proposal), num_elites_(num_elites) {
  make_groups();
}

void TpeCandidates::make_groups() {
  const Observations& observations = model_.observations();
  std::vector<std::size_t> known_group(observations.columns().size(), kNone);
  for (std::size_t i = 0; i < observations.groups().size(); ++i)
    for (const std::size_t id : observations.groups()[i]) known_group[id] = i;
  std::vector<std::size_t> group_of(observations.groups().size(), kNone);  // theirs to ours
  std::map<std::string_view, std::size_t> index_of;
  for (std::size_t i = 0; i < space_.size(); ++i) {
    const SpaceParameter& parameter = space_[i];
    index_of[parameter.name] = i;
    Place place;
    if (!parameter.parent.empty()) place.parent = index_of.at(parameter.parent);
    if (!is_single(*parameter.distribution)) {
      // A parameter that no trial has had yet is alone.
      place.group = groups_.size();
      if (const auto column = observations.find(parameter.name)) {
        std::size_t& ours = group_of[known_group[*column]];
        if (ours == kNone) ours = groups_.size();
        place.group = ours;
      }
      if (place.group == groups_.size()) groups_.emplace_back();
      place.axis = groups_[place.group].axes.size();
      groups_[place.group].axes.push_back({parameter.name, parameter.distribution});
    }
    places_.push_back(place);
  }
}

void TpeCandidates::fill(Group& group) const {
  const TpeDensities densities = model_.densities(group.axes, group.axes.size() > 1);
  KeyedRandom random(proposal_, "tpe:" + group.axes.front().name);
  group.points = densities.good.sample(random, model_.options().candidates);
  add_neighbors(group);
  const std::vector<double> scores = densities.scores(group.points);
  group.ranking.resize(scores.size());
  std::iota(group.ranking.begin(), group.ranking.end(), std::size_t{0});
  std::stable_sort(group.ranking.begin(), group.ranking.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  // A sample that repeats another would only repeat its points.
  const auto is_equal = [&](std::size_t a, std::size_t b) {
    return scores[a] == scores[b] &&
           std::all_of(group.points.begin(), group.points.end(),
                       [&](const std::vector<double>& axis) { return axis[a] == axis[b]; });
  };
  group.ranking.erase(std::unique(group.ranking.begin(), group.ranking.end(), is_equal),
                      group.ranking.end());
  for (const std::size_t i : group.ranking)
    group.losses.push_back(scores[group.ranking.front()] - scores[i]);
}

void TpeCandidates::add_neighbors(Group& group) const {
  const Observations& observations = model_.observations();
  std::vector<double> point(group.axes.size());
  std::size_t num_added = 0;
  for (const std::size_t row : best_rows(model_, num_elites_)) {
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

Assignment TpeCandidates::point(const Entry& entry, std::vector<bool>& is_active) {
  Assignment result;
  result.reserve(space_.size());
  is_active.assign(groups_.size(), false);
  std::vector<double> values(space_.size(), std::nan(""));
  std::vector<std::size_t> ranks(groups_.size(), 0);
  for (const auto& [group, rank] : entry.ranks) ranks[group] = rank;
  for (std::size_t i = 0; i < space_.size(); ++i) {
    const SpaceParameter& parameter = space_[i];
    const Place& place = places_[i];
    if (place.parent != kNone &&
        std::find(parameter.parent_values.begin(), parameter.parent_values.end(),
                  values[place.parent]) == parameter.parent_values.end())
      continue;
    values[i] = 0;
    if (place.group != kNone) {
      Group& group = groups_[place.group];
      if (group.points.empty()) fill(group);
      is_active[place.group] = true;
      values[i] = group.points[place.axis][group.ranking[ranks[place.group]]];
    } else if (const auto range = numeric_range(*parameter.distribution)) {
      values[i] = range->first;
    }
    result.push_back({parameter.name, parameter.distribution, values[i]});
  }
  return result;
}

std::vector<Assignment> TpeCandidates::best(
    std::size_t count, const std::function<bool(const Assignment&)>& is_wanted) {
  std::vector<Assignment> result;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({});
  std::vector<bool> is_active;
  for (int looks = 0; looks < kMaxLooks && !queue.empty() && result.size() < count; ++looks) {
    const Entry entry = queue.top();
    queue.pop();
    Assignment candidate = point(entry, is_active);
    // Groups are changed in their order, so that every point is reached in one way only. Which are
    // active then depends on earlier ones alone, since parents come first.
    const std::size_t first = entry.ranks.empty() ? 0 : entry.ranks.back().first;
    for (std::size_t i = first; i < groups_.size(); ++i) {
      const bool is_last = !entry.ranks.empty() && i == first;
      const std::size_t rank = is_last ? entry.ranks.back().second : 0;
      if (!is_active[i] || rank + 1 >= groups_[i].ranking.size()) continue;
      Entry next = entry;
      next.loss += groups_[i].losses[rank + 1] - groups_[i].losses[rank];
      if (is_last)
        next.ranks.back().second = rank + 1;
      else
        next.ranks.emplace_back(i, rank + 1);
      queue.push(std::move(next));
    }
    if (is_wanted(candidate)) result.push_back(std::move(candidate));
  }
  return result;
}

}  // namespace lathe::study
