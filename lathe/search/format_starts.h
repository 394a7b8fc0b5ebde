#pragma once

#include <functional>
#include <map>

#include "lathe/search/allocation.h"
#include "lathe/search/search_directory.h"
#include "lathe/search/search_options.h"
#include "lathe/search/trial_data.h"
#include "lathe/train/answers.h"

namespace lathe::search {

/// What the point of that number is drawn within for a front: budgets lie between both, as many
/// small ones as large, evenly however many are drawn; those of weights and of data apart. What has
/// no bounds has no budget.
BitBudget front_budget(const BitBudget& least, const BitBudget& most, int number);

/// Where searches for formats begin: the best by damage within the budget, of a front also within
/// what each format costs that all layers have. Damage is how far answers move with one layer's
/// tensors alone in a format, and of weights also what Fisher information says of the same; both
/// are measured once and kept in the search's directory.
class FormatStarts {
 public:
  FormatStarts(const SearchOptions& options, const engine::ExecutionOptions& execution,
               const experiment::Callbacks& callbacks, const SearchSpace& space,
               const TrialData& data, std::vector<std::string> layers, const PrecisionCosts& costs,
               SearchDirectory& directory);
  FormatStarts(const FormatStarts&) = delete;
  FormatStarts& operator=(const FormatStarts&) = delete;

  /// A study's point by number. Starts first. Within a budget most points that a sampler draws at
  /// random cost too much, so that others are drawn from near the best by damage: all of a random
  /// study's, and of one that learns the first and every other.
  std::optional<Allocation::Point> propose(const std::string& sampler, int number) const;

 private:
  bool has_budget() const { return budget_.weights || budget_.data; }
  void measure_fisher();
  void measure_damage();
  void find_starts(const PrecisionCosts& costs);
  std::vector<double> uniform_bits(const PrecisionCosts& costs) const;
  BitBudget budget_of(int number) const;
  /// Of one layer: figures by the names that the directory keeps them by.
  using MeasureLayer = std::function<std::map<std::string, double>(
      const std::string& layer, const engine::ExecutionOptions& execution,
      const experiment::Callbacks& callbacks)>;
  void measure_layers(const char* activity, const MeasureLayer& measure);
  train::Answers answer(const io::Model& model, const engine::ExecutionOptions& execution,
                        const experiment::Callbacks& callbacks) const;

  const SearchOptions& options_;
  const engine::ExecutionOptions& execution_;
  const experiment::Callbacks& callbacks_;
  const SearchSpace& file_;
  const TrialData& data_;
  const std::vector<std::string> layers_;
  SearchDirectory& directory_;
  const BitBudget budget_;
  std::optional<Allocation> allocation_, fisher_allocation_;
  std::vector<Allocation::Point> starts_;
};

}  // namespace lathe::search
