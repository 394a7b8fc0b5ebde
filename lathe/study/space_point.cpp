#include "lathe/study/space_point.h"

#include <algorithm>
#include <bit>

#include "lathe/study/math/keyed_random.h"
#include "lathe/study/uniform_value.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

namespace {

// The value of number `index` in a countable distribution.
double nth_value(const Distribution& distribution, std::int64_t index) {
  if (num_choices(distribution) > 0) return static_cast<double>(index);
  const NumericRange range = *numeric_range(distribution);
  if (!range.step) return range.first;
  return std::min(range.first + static_cast<double>(index) * *range.step, range.last);
}

// Visits the points whose first `depth` parameters are those of `point`.
bool visit_below(const Space& space, std::size_t depth, Assignment& point,
                 const std::function<bool(const Assignment&)>& visit) {
  if (depth == space.size()) return visit(point);
  const SpaceParameter& parameter = space[depth];
  if (!is_present(parameter, point)) return visit_below(space, depth + 1, point, visit);
  const std::int64_t count = num_values(*parameter.distribution).value_or(1);
  for (std::int64_t i = 0; i < count; ++i) {
    point.push_back(
        {parameter.name, parameter.distribution, nth_value(*parameter.distribution, i)});
    if (visit_below(space, depth + 1, point, visit)) return true;
    point.pop_back();
  }
  return false;
}

}  // namespace

const Parameter* find_parameter(const Assignment& point, std::string_view name) {
  for (const Parameter& parameter : point)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

bool is_present(const SpaceParameter& parameter, const Assignment& so_far) {
  if (parameter.parent.empty()) return true;
  const Parameter* parent = find_parameter(so_far, parameter.parent);
  if (parent == nullptr) return false;
  return std::find(parameter.parent_values.begin(), parameter.parent_values.end(), parent->value) !=
         parameter.parent_values.end();
}

Assignment complete_point(const Space& space, const Assignment& wanted, UniformSource& random) {
  Assignment point;
  for (const SpaceParameter& parameter : space) {
    if (!is_present(parameter, point)) continue;
    const Parameter* wish = find_parameter(wanted, parameter.name);
    const bool is_valid = wish != nullptr && contains(*parameter.distribution, wish->value);
    point.push_back({parameter.name, parameter.distribution,
                     is_valid ? wish->value : uniform_value(*parameter.distribution, random)});
  }
  return point;
}

std::optional<std::int64_t> num_points(const Space& space, std::int64_t limit) {
  for (const SpaceParameter& parameter : space)
    if (!num_values(*parameter.distribution)) return {};
  std::int64_t count = 0;
  if (visit_points(space, [&](const Assignment&) { return ++count > limit; })) return {};
  return count;
}

bool visit_points(const Space& space, const std::function<bool(const Assignment&)>& visit) {
  Assignment point;
  return visit_below(space, 0, point, visit);
}

std::uint64_t point_key(const Assignment& point) {
  // A sum does not mind the order.
  std::uint64_t sum = 0;
  for (const Parameter& parameter : point) {
    const double value = parameter.value == 0 ? 0 : parameter.value;  // -0 is 0
    KeyedRandom mixer(std::bit_cast<std::uint64_t>(value), 0, parameter.name);
    sum += mixer.bits();
  }
  return sum;
}

void SeenPoints::update(const History& history) {
  for (; num_read_ < history.finished().size(); ++num_read_)
    finished_.insert(point_key(history.trials()[history.finished()[num_read_]].parameters));
  running_.clear();
  for (const int number : history.unfinished())
    running_.insert(point_key(history.trials()[number].parameters));
}

bool SeenPoints::contains(const Assignment& point) const {
  const std::uint64_t key = point_key(point);
  return finished_.contains(key) || running_.contains(key);
}

}  // namespace lathe::study
