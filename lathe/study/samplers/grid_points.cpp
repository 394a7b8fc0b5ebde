#include "lathe/study/samplers/grid_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lathe/core/error.h"
#include "lathe/study/uniform_value.h"

namespace lathe::study {

namespace {

constexpr std::uint64_t kMaxPoints = std::uint64_t{1} << 62;
// The values of a parameter on which others depend are walked over.
constexpr std::uint64_t kMaxParentValues = 1000000;

std::uint64_t multiplied(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > kMaxPoints / b) fail("the space has more than 4.6e18 points");
  return a * b;
}

}  // namespace

GridPoints::GridPoints(const Space& space, int num_steps) {
  std::map<std::string, std::size_t> index_of;
  for (const SpaceParameter& parameter : space) {
    const std::size_t index = nodes_.size();
    index_of[parameter.name] = index;
    if (parameter.parent.empty())
      roots_.push_back(index);
    else
      nodes_.at(index_of.at(parameter.parent)).children.push_back(index);
    const auto count = num_values(*parameter.distribution);
    if (!count && num_steps == 0)
      throw UserError(fmt::format("parameter \"{}\" has no step", parameter.name),
                      "points=N gives such parameters N values each");
    nodes_.push_back({parameter, static_cast<std::uint64_t>(count.value_or(num_steps))});
  }
  // Children stand after their parents, so their sizes are known first.
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    node.size = node.num_values;
    if (node.children.empty()) continue;
    if (node.num_values > kMaxParentValues)
      fail("parameter \"{}\" has {} values and others depend on it", node.parameter.name,
           node.num_values);
    node.size = 0;
    for (std::uint64_t v = 0; v < node.num_values; ++v) {
      node.size += size_below(node, value(node, v));
      if (node.size > kMaxPoints) fail("the space has more than 4.6e18 points");
    }
  }
  for (const std::size_t root : roots_) size_ = multiplied(size_, nodes_[root].size);
}

double GridPoints::value(const Node& node, std::uint64_t index) const {
  const Distribution& distribution = *node.parameter.distribution;
  if (num_choices(distribution) > 0) return static_cast<double>(index);
  const NumericRange range = *numeric_range(distribution);
  if (range.step)
    return std::min(range.first + static_cast<double>(index) * *range.step, range.last);
  if (node.num_values == 1) return range.first;
  const double share = static_cast<double>(index) / static_cast<double>(node.num_values - 1);
  return range.to_internal(range.low + share * range.width());
}

std::vector<double> GridPoints::values(std::size_t parameter) const {
  std::vector<double> result;
  for (std::uint64_t i = 0; i < nodes_[parameter].num_values; ++i)
    result.push_back(value(nodes_[parameter], i));
  return result;
}

std::vector<std::size_t> GridPoints::present_children(const Node& node, double value) const {
  std::vector<std::size_t> result;
  for (const std::size_t child : node.children) {
    const auto& wanted = nodes_[child].parameter.parent_values;
    if (std::find(wanted.begin(), wanted.end(), value) != wanted.end()) result.push_back(child);
  }
  return result;
}

std::uint64_t GridPoints::size_below(const Node& node, double value) const {
  std::uint64_t size = 1;
  for (const std::size_t child : present_children(node, value))
    size = multiplied(size, nodes_[child].size);
  return size;
}

void GridPoints::place(const std::vector<std::size_t>& nodes, std::uint64_t index,
                       std::vector<double>& values) const {
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes_[nodes[i]];
    std::uint64_t rest = index % node.size;
    index /= node.size;
    if (node.children.empty()) {
      values[nodes[i]] = value(node, rest);
      continue;
    }
    for (std::uint64_t v = 0; v < node.num_values; ++v) {
      const double candidate = value(node, v);
      const std::uint64_t below = size_below(node, candidate);
      if (rest >= below) {
        rest -= below;
        continue;
      }
      values[nodes[i]] = candidate;
      place(present_children(node, candidate), rest, values);
      break;
    }
  }
}

std::vector<GridPoints::Part> GridPoints::parts(std::size_t most) const {
  std::vector<Part> parts(1), whole(1);
  for (const std::size_t root : roots_) {
    const Node& node = nodes_[root];
    std::vector<Part::Range> ranges;
    if (node.children.empty() || node.num_values > most) {
      ranges.push_back({0, node.size});
    } else {
      for (std::uint64_t v = 0, first = 0; v < node.num_values; ++v) {
        ranges.push_back({first, size_below(node, value(node, v))});
        first += ranges.back().count;
      }
    }
    whole.front().ranges.push_back({0, node.size});
    std::vector<Part> split;
    for (const Part& part : parts)
      for (const Part::Range& range : ranges) {
        split.push_back(part);
        split.back().ranges.push_back(range);
        split.back().size *= range.count;
      }
    parts = std::move(split);
    if (parts.size() > most) parts.resize(most + 1);  // too many, however many
  }
  whole.front().size = size_;
  if (parts.size() > most) return whole;
  std::ranges::stable_sort(parts, {}, &Part::size);
  return parts;
}

std::uint64_t GridPoints::number(const Part& part, std::uint64_t index) const {
  std::uint64_t result = 0, place = 1;
  for (std::size_t i = roots_.size(); i-- > 0;) {
    const Part::Range& range = part.ranges[i];
    result += (range.first + index % range.count) * place;
    index /= range.count;
    place *= nodes_[roots_[i]].size;
  }
  return result;
}

Assignment GridPoints::point(std::uint64_t index) const {
  std::vector<double> values(nodes_.size(), std::numeric_limits<double>::quiet_NaN());
  place(roots_, index, values);
  Assignment result;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!std::isnan(values[i]))
      result.push_back({nodes_[i].parameter.name, nodes_[i].parameter.distribution, values[i]});
  return result;
}

}  // namespace lathe::study
