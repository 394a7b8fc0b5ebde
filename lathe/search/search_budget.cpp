#include "lathe/search/search_budget.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "lathe/core/error.h"
#include "lathe/search/smallest_candidate.h"

namespace lathe::search {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

bool SearchBudget::holds(const study::Assignment& point) const {
  const std::optional<Candidate> candidate = space_.find_candidate(point);
  return !candidate || holds(*candidate);  // or not decided yet
}

bool SearchBudget::holds(const Candidate& candidate) const {
  const Costs costs = costs_.known(candidate);
  const auto is_within = [&](const std::string& name, double most) {
    const auto found = costs.find(name);  // what is measured shows when a trial begins
    return found == costs.end() || found->second <= most;
  };
  return is_within("weight-bits", options_.max_weight_bits.value_or(kNoLimit)) &&
         is_within("data-bits", options_.max_data_bits.value_or(kNoLimit)) &&
         std::ranges::all_of(options_.limits, [&](const auto& limit) {
           return is_within(limit.first, limit.second);
         });
}

std::vector<Allocation::Point> SearchBudget::affordable(
    std::vector<Allocation::Point> points) const {
  std::erase_if(points, [&](const Allocation::Point& point) {
    study::Assignment known;
    for (const study::SpaceParameter& each : space_.parameters())
      for (const auto& [name, value] : point)
        if (name == each.name)
          known.push_back(
              {name, each.distribution, study::to_internal(*each.distribution, value, name)});
    return is_given() && !holds(known);
  });
  return points;
}

void SearchBudget::check(bool chooses_by_layer) const {
  if (!options_.limits.empty()) {
    Costs least;
    const auto count = [&](const Candidate& candidate) {
      for (const auto& [name, cost] : costs_.known(candidate))
        least[name] = least.contains(name) ? std::min(least[name], cost) : cost;
    };
    for (Candidate candidate : smallest_candidates(space_)) {
      count(candidate);
      candidate.pruning.clear();  // a mask may take more than it saves
      count(candidate);
    }
    for (const auto& [name, most] : options_.limits)
      if (const auto found = least.find(name); found != least.end() && found->second > most)
        fail("max {}={}: no point of the space has so few; the smallest possible is {:.6g}", name,
             most, found->second);
  }
  if (!has_bits()) return;
  if (!chooses_by_layer) fail("max-weight-bits: needs a model, whose formats are searched");
  const BitBudget smallest =
      Allocation(file_, space_.layers(), layer_costs_,
                 [](const std::string&, const TensorChoices&, const std::string&) { return 0.0; })
          .smallest();
  for (const auto& [name, most, least] :
       {std::tuple("max-weight-bits", options_.max_weight_bits, *smallest.weights),
        std::tuple("max-data-bits", options_.max_data_bits, *smallest.data)})
    if (most && *most < least)
      fail("{} {}: no point of the space has so few; the smallest possible is {:.4g}", name, *most,
           least);
}

}  // namespace lathe::search
