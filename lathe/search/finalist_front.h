#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lathe/search/finalists.h"

namespace lathe::search {

/// Those of a search's finalists that none beats in both, loss and cost, by more than an error.
///
/// Losses are of rows held out, means over the seeds: accuracies of 5,000 rows hardly tell apart
/// what two bits and four come to, and tests choose nothing.
class FinalistFront {
 public:
  /// The finalists outlive it.
  FinalistFront(const std::vector<Finalist>& finalists, std::string cost);

  /// How far the difference of two mean losses is off by chance, usually: its standard error, by
  /// what seeds make of one candidate and not of all alike. 0 where there is one seed, and all
  /// differences count.
  double error() const { return error_; }

  /// Whether no other of no more cost has a loss that is lower by more than an error.
  bool has(const Finalist& finalist) const;

  /// The best of those that cost no more; null where all cost more. Of what is within an error of
  /// the least loss that is the one of the highest cost: what is not told apart by losses most
  /// likely gains by what it may spend.
  const Finalist* best_within(double cost,
                              const std::function<bool(const Finalist&)>& is_meant) const;

 private:
  double cost_of(const Finalist& finalist) const { return finalist.costs.at(cost_); }

  const std::vector<Finalist>& finalists_;
  const std::string cost_;
  double error_ = 0;
};

}  // namespace lathe::search
