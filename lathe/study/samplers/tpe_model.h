#pragma once

#include <span>
#include <string>
#include <vector>

#include "lathe/study/samplers/observations.h"
#include "lathe/study/samplers/parzen_estimator.h"
#include "lathe/study/samplers/tpe_options.h"
#include "lathe/study/samplers/tpe_split.h"

namespace lathe::study {

/// A parameter as TPE asks about it: where its observations are and what it is to be drawn from.
struct TpeAxis {
  std::string name;
  DistributionPtr distribution;
};

/// The densities of good and of other trials over some parameters.
struct TpeDensities {
  ParzenEstimator good;
  ParzenEstimator other;

  /// How much likelier each point is among the good, as a logarithm.
  std::vector<double> scores(const Points& points) const;
  /// Where different points share the best score, scores them as Optuna rounds it.
  void break_ties_in_order(const Points& points, std::vector<double>& scores) const;
};

/// What TPE knows about a study: its observations, split once per trial.
class TpeModel {
 public:
  explicit TpeModel(TpeOptions options) : options_(std::move(options)) {}

  const TpeOptions& options() const { return options_; }
  const Observations& observations() const { return observations_; }
  /// Reads what is new in the history and splits it.
  void update(const History& history, int own_number);
  /// The same in two steps, for who wants another split: only trials from `first_number` on, with
  /// another share of good ones.
  void read(const History& history, int own_number);
  void split_anew(int first_number, double gamma);
  /// Whether there are fewer results than trials to start with.
  bool is_starting() const { return observations_.num_finished() < options_.startup; }
  /// Of the last update.
  const Split& halves() const { return split_; }

  /// Estimates from the trials that have all of the parameters.
  TpeDensities densities(std::span<const TpeAxis> axes, bool is_joint) const;

 private:
  TpeOptions options_;
  Observations observations_;
  Split split_;
  std::size_t split_version_ = 0;
  std::size_t num_objectives_ = 1;
};

}  // namespace lathe::study
