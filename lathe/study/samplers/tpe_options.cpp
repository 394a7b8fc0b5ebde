#include "lathe/study/samplers/tpe_options.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/study/option_reader.h"

namespace lathe::study {

std::size_t TpeOptions::num_below(std::size_t count, std::size_t num_objectives) const {
  const auto share = static_cast<std::size_t>(std::ceil(gamma * static_cast<double>(count)));
  if (num_objectives > 1 && !is_gamma_capped_for_many) return share;
  return std::min(share, gamma_limit);
}

TpeOptions tpe_preset(const std::string& name) {
  if (name == "lathe") return {};
  TpeOptions options{.is_optuna = true,
                     .multivariate = false,
                     .group = false,
                     .constant_liar = false,
                     .kernels = {.bandwidth = Bandwidth::Scott, .adds_kernels_in_order = true}};
  if (name == "optuna-3") {
    options.kernels.discrete_log = false;
    options.kernels.divides_by_width = false;
    return options;
  }
  options.is_space_sorted = true;
  options.independent_bandwidth = Bandwidth::Neighbors;
  options.independent_divides_by_width = true;
  options.kernels.categorical_first = true;
  if (name == "optuna-4") return options;
  options.multivariate.reset();
  options.constant_liar = true;
  options.kernels.bandwidth = Bandwidth::Neighbors;
  options.is_gamma_capped_for_many = false;
  options.weigh_by_hypervolume = false;
  return options;
}

TpeOptions read_tpe_options(const Options& options, const std::string& preset) {
  const OptionReader reader(options);
  TpeOptions result =
      tpe_preset(reader.word("preset", preset, {"lathe", "optuna-3", "optuna-4", "optuna-5"}));
  if (reader.has("multivariate")) result.multivariate = reader.flag("multivariate", true);
  result.group = reader.flag("group", result.group);
  if (reader.has("group") && result.group && result.multivariate == false)
    fail("group=true: needs multivariate=true");
  result.constant_liar = reader.flag("constant_liar", result.constant_liar);
  result.startup = static_cast<std::size_t>(
      reader.whole("startup", static_cast<std::int64_t>(result.startup), 0));
  result.candidates = static_cast<std::size_t>(
      reader.whole("candidates", static_cast<std::int64_t>(result.candidates), 1, 100000));
  result.gamma = reader.number("gamma", result.gamma, 0, 1);
  result.gamma_limit = static_cast<std::size_t>(
      reader.whole("gamma_limit", static_cast<std::int64_t>(result.gamma_limit), 1));
  result.recent =
      static_cast<std::size_t>(reader.whole("recent", static_cast<std::int64_t>(result.recent), 0));
  if (reader.word("weights", "recent", {"recent", "uniform"}) == "uniform") result.recent = 0;
  // At zero a choice that was never seen would be impossible, and its logarithm infinite.
  result.kernels.prior_weight =
      reader.number("prior_weight", result.kernels.prior_weight, 1e-6, 1e6);
  result.kernels.endpoints = reader.flag("endpoints", result.kernels.endpoints);
  result.kernels.magic_clip = reader.flag("magic_clip", result.kernels.magic_clip);
  if (reader.has("bandwidth")) {
    const bool is_scott = reader.word("bandwidth", "neighbors", {"neighbors", "scott"}) == "scott";
    result.kernels.bandwidth = is_scott ? Bandwidth::Scott : Bandwidth::Neighbors;
  }
  return result;
}

std::vector<KindOption> tpe_option_list() {
  return {
      {"preset", "lathe, or as Optuna does it: optuna-3, optuna-4 or optuna-5 [lathe]"},
      {"multivariate", "true draws parameters together, false each by itself [true]"},
      {"group", "draw those together that always occur together [true]"},
      {"constant_liar", "running trials count as bad ones [true]"},
      {"startup", "trials drawn at random first, at least 0 [10]"},
      {"candidates", "points to choose from, 1 to 100000 [24]"},
      {"gamma", "share of trials that count as good, 0 to 1 [0.1]"},
      {"gamma_limit", "but no more than so many, at least 1 [25]"},
      {"recent", "trials that count in full, older ones less; 0: all do [25]"},
      {"weights", "recent, or uniform: all count in full [recent]"},
      {"prior_weight", "of what the space itself says, 1e-6 to 1e6 [1]"},
      {"endpoints", "the ends of a range count as neighbours [false]"},
      {"magic_clip", "no kernel gets very narrow [true]"},
      {"bandwidth", "width of kernels by neighbors or scott [neighbors]"},
  };
}

}  // namespace lathe::study
