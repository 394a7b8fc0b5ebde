#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/compress/budget.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/precision_costs.h"

namespace lathe::search {

/// Budgets of a model's numbers, in average stored bits; nothing: none.
struct BitBudget {
  std::optional<double> weights = {}, data = {};
};

/// How far the answers move when one layer's tensors alone have a format: by layer, by what of the
/// layer (TensorChoices::name) and by format.
using Damage = std::function<double(const std::string& layer, const TensorChoices& tensors,
                                    const std::string& format)>;

/// Proposes formats for all layers at once: those that do the least damage within a budget, by the
/// exact solver (compress/budget.h).
///
/// Where a layer's tensors share one format, its weights count for the budget of weights and what
/// it reads for no other.
class Allocation {
 public:
  Allocation(const SearchSpace& space, const std::vector<std::string>& layers,
             const PrecisionCosts& costs, const Damage& damage);

  /// Values of parameters, as a study is asked to try them.
  using Point = std::vector<std::pair<std::string, study::Choice>>;

  /// The point of least damage within the budget; nothing where there is none.
  std::optional<Point> best(const BitBudget& budget) const;
  /// Another one: damages are multiplied by random factors, a function of `seed`, and so much of
  /// the budget is used as chance says. Always within the budget.
  std::optional<Point> sample(const BitBudget& budget, std::uint64_t seed) const;

  /// The fewest average bits that any point has, and the most.
  BitBudget smallest() const { return extreme(false); }
  BitBudget largest() const { return extreme(true); }

 private:
  // A choice of a family and of its variables, for one layer's tensors.
  struct Option {
    std::size_t family = 0;
    std::map<std::string, study::Choice> variables;
    std::int64_t cost = 0;  // in thousandths of a bit
    double damage = 0;
  };
  struct Item {
    std::string name;  // of the parameter that chooses the family
    const TensorChoices* tensors = nullptr;
    bool is_data = false;  // what it costs is data
    std::vector<Option> options = {};
  };
  std::optional<Point> solve(const BitBudget& budget, const std::function<double(double)>& changed,
                             double share) const;
  BitBudget extreme(bool is_largest) const;

  std::vector<Item> items_;
  double num_weights_ = 0, num_data_ = 0;      // elements of all layers
  double other_weights_ = 0, other_data_ = 0;  // bits of those that choose nothing
};

}  // namespace lathe::search
