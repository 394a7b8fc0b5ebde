#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "lathe/study/math/uniform_source.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// The parameter of that name, or nullptr.
const Parameter* find_parameter(const Assignment& point, std::string_view name);

/// Whether the parameter exists in a trial that has `so_far`.
bool is_present(const SpaceParameter& parameter, const Assignment& so_far);

/// The point of the space that agrees with `wanted` wherever it says something valid and is random
/// elsewhere. Parameters whose condition does not hold are left out.
Assignment complete_point(const Space& space, const Assignment& wanted, UniformSource& random);

/// The number of points, conditions considered; nothing when they cannot be counted or are more
/// than `limit`.
std::optional<std::int64_t> num_points(const Space& space, std::int64_t limit);
/// Calls `visit` with every point of a countable space until it returns true; says whether it did.
bool visit_points(const Space& space, const std::function<bool(const Assignment&)>& visit);

/// A number that two points share only if they are equal, whatever the order of their parameters
/// (but for one accident in 2^64).
std::uint64_t point_key(const Assignment& point);

/// The points that a study has tried or is trying; failed trials count too.
class SeenPoints {
 public:
  void update(const History& history);
  bool contains(const Assignment& point) const;
  std::size_t size() const { return finished_.size(); }

 private:
  std::unordered_set<std::uint64_t> finished_;
  std::unordered_set<std::uint64_t> running_;
  std::size_t num_read_ = 0;
};

}  // namespace lathe::study
