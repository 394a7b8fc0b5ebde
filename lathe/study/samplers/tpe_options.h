#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lathe/study/samplers/parzen_estimator.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// Everything about TPE that can be chosen. The values here are our own preset.
struct TpeOptions {
  bool is_optuna = false;  ///< draw from one running generator, over the space past trials had
  /// Parameters are sampled together rather than one by one. Nothing: with one objective only.
  std::optional<bool> multivariate = true;
  /// Parameters that always occur together are sampled together, each such group by itself; without
  /// it, only those that every trial has.
  bool group = true;
  /// Running trials count as bad ones, which keeps parallel workers apart.
  bool constant_liar = true;
  bool is_space_sorted = false;  ///< the axes of a joint sample are ordered by name
  std::size_t startup = 10;      ///< trials drawn at random first
  std::size_t candidates = 24;
  double gamma = 0.1;                    ///< the share of trials that count as good ...
  std::size_t gamma_limit = 25;          ///< ... but no more than so many
  bool is_gamma_capped_for_many = true;  ///< the limit holds for several objectives too
  bool weigh_by_hypervolume = true;      ///< of several objectives: see `split`
  std::size_t recent = 25;  ///< so many observations count in full, older ones less; 0: all in full
  KernelOptions kernels = {};
  /// The same of one parameter alone. Of joint kernels and of these, our own preset has what did
  /// best on test functions: alone, a wide prior is worth more than a proper density.
  Bandwidth independent_bandwidth = Bandwidth::NeighborsWithPrior;
  bool independent_divides_by_width = false;

  /// Of so many finished trials, how many count as good.
  std::size_t num_below(std::size_t count, std::size_t num_objectives) const;
};

/// `lathe`, or Optuna as of a major version: `optuna-3` is 3.1, `optuna-4` is 4.9, `optuna-5` the
/// first 5.0.
TpeOptions tpe_preset(const std::string& name);
/// The preset that the options name (else `preset`) with what else they say changed.
TpeOptions read_tpe_options(const Options& options, const std::string& preset = "lathe");
/// What `read_tpe_options` knows.
std::vector<KindOption> tpe_option_list();

}  // namespace lathe::study
