#pragma once

#include <vector>

#include "lathe/search/allocation.h"
#include "lathe/search/candidate_costs.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/precision_costs.h"
#include "lathe/search/search_options.h"

namespace lathe::search {

/// What a search's points may cost, as far as that is known before anything is built.
class SearchBudget {
 public:
  /// Everything must stay where it is as long as the budget is asked. `file` is the space before
  /// layers were chosen.
  SearchBudget(const SearchOptions& options, const SearchSpace& file, const CandidateSpace& space,
               const CandidateCosts& costs, const PrecisionCosts& layer_costs)
      : options_(options), file_(file), space_(space), costs_(costs), layer_costs_(layer_costs) {}

  bool is_given() const { return has_bits() || !options_.limits.empty(); }
  /// Whether a candidate is within it.
  bool holds(const Candidate& candidate) const;
  /// The same of a point, of which some may not be decided yet: then it may be.
  bool holds(const study::Assignment& point) const;
  /// Those of the points that are within it.
  std::vector<Allocation::Point> affordable(std::vector<Allocation::Point> points) const;
  /// Fails where no point of the space meets it. Bits need layers that choose for themselves.
  void check(bool chooses_by_layer) const;

 private:
  bool has_bits() const { return options_.max_weight_bits || options_.max_data_bits; }

  const SearchOptions& options_;
  const SearchSpace& file_;
  const CandidateSpace& space_;
  const CandidateCosts& costs_;
  const PrecisionCosts& layer_costs_;
};

}  // namespace lathe::search
