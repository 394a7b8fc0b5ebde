#include "lathe/search/format_starts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lathe/compress/packed_weights.h"
#include "lathe/experiment/side_by_side.h"
#include "lathe/search/fisher_information.h"
#include "lathe/search/precision_costs.h"
#include "lathe/search/train_candidate.h"
#include "lathe/train/make_source.h"

namespace lathe::search {
namespace {

constexpr int kFirstDrawn = 12;

// Budgets of starts where the user has none: data of fewer bits costs more than it saves, and more
// bits of weights gain nothing.
constexpr double kFewDataBits = 4, kManyBits = 8;
// What rounding costs to thousandths of a bit may add to the smallest budget.
constexpr double kBitShare = 0.01;

bool has_weights(const TensorChoices& tensors) {
  return std::ranges::find(tensors.roles, compress::TensorRole::Weights) != tensors.roles.end();
}
std::string fisher_name(const std::string& layer, const std::string& format) {
  return fmt::format("Fisher damage of {} to {}", format, layer);
}
std::string damage_name(const std::string& layer, const TensorChoices& tensors,
                        const std::string& format) {
  return fmt::format("damage of {} to {}{}{}", format, layer, tensors.name.empty() ? "" : " ",
                     tensors.name);
}

}  // namespace

BitBudget front_budget(const BitBudget& least, const BitBudget& most, int number) {
  // Multiples of the golden section fill an interval evenly; with those of its like for a square,
  // where x^3 = x + 1 takes the place of x^2 = x + 1, they fill a square.
  const auto between = [&](const std::optional<double>& low, const std::optional<double>& high,
                           double step) -> std::optional<double> {
    if (!low || !high) return std::nullopt;
    return *low * std::pow(std::max(1.0, *high / *low), std::fmod(step * (number + 1), 1.0));
  };
  return {.weights = between(least.weights, most.weights, 0.6180339887498949),
          .data = between(least.data, most.data, 0.7548776662466927)};
}

FormatStarts::FormatStarts(const SearchOptions& options, const engine::ExecutionOptions& execution,
                           const experiment::Callbacks& callbacks, const SearchSpace& space,
                           const TrialData& data, std::vector<std::string> layers,
                           const PrecisionCosts& costs, SearchDirectory& directory)
    : options_(options),
      execution_(execution),
      callbacks_(callbacks),
      file_(space),
      data_(data),
      layers_(std::move(layers)),
      directory_(directory),
      budget_{.weights = options.max_weight_bits, .data = options.max_data_bits} {
  measure_fisher();
  measure_damage();
  allocation_.emplace(
      file_, layers_, costs,
      [this](const std::string& layer, const TensorChoices& tensors, const std::string& format) {
        return *directory_.find(damage_name(layer, tensors, format));
      });
  fisher_allocation_.emplace(
      file_, layers_, costs,
      [this](const std::string& layer, const TensorChoices& tensors, const std::string& format) {
        const auto fisher = directory_.find(fisher_name(layer, format));
        // Of what is no weight, and of formats that are not stored, answers tell alone.
        return has_weights(tensors) && fisher
                   ? *fisher
                   : *directory_.find(damage_name(layer, tensors, format));
      });
  find_starts(costs);
}

// Layers side by side as trials are: none needs another's figures.
void FormatStarts::measure_layers(const char* activity, const MeasureLayer& measure) {
  std::vector<experiment::Job> jobs;
  for (const std::string& layer : layers_)
    jobs.emplace_back(
        [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          directory_.keep(measure(layer, execution, callbacks));
          callbacks.tell({.activity = activity, .unit = "layers"});
        });
  experiment::do_side_by_side(jobs, options_.jobs, execution_, callbacks_);
}

// How far answers move with one layer's tensors alone in a format.
void FormatStarts::measure_damage() {
  const train::Answers plain = answer(data_.base(), execution_, callbacks_);
  const auto damage_of = [&](const std::string& layer, const TensorChoices& tensors,
                             const std::string& format, const engine::ExecutionOptions& execution,
                             const experiment::Callbacks& callbacks) {
    if (format == "float") return 0.0;
    Candidate one;
    for (const compress::TensorRole role : tensors.roles) one.formats[layer][role] = format;
    const io::Model rounded = build_candidate(data_, one, options_.seed, execution);
    return train::mean_divergence(plain.logits, answer(rounded, execution, callbacks).logits);
  };
  measure_layers("measuring damage", [&](const std::string& layer, const auto& execution,
                                         const experiment::Callbacks& callbacks) {
    std::map<std::string, double> found;
    for (const TensorChoices& tensors : file_.precision->tensors)
      for (const FormatChoices& family : tensors.families)
        for (const std::string& format : family.formats) {
          const std::string name = damage_name(layer, tensors, format);
          if (!directory_.find(name) && !found.contains(name))
            found[name] = damage_of(layer, tensors, format, execution, callbacks);
        }
    return found;
  });
}

void FormatStarts::measure_fisher() {
  std::set<std::string> formats;
  for (const TensorChoices& tensors : file_.precision->tensors)
    if (has_weights(tensors))
      for (const FormatChoices& family : tensors.families)
        formats.insert(family.formats.begin(), family.formats.end());
  const auto is_known = [&](const std::string& layer, const std::string& format) {
    return directory_.find(fisher_name(layer, format)).has_value();
  };
  if (std::ranges::all_of(layers_, [&](const std::string& layer) {
        return std::ranges::all_of(
            formats, [&](const std::string& format) { return is_known(layer, format); });
      }))
    return;
  const FisherInformation information = fisher_information(
      data_.base(), *data_.calibration(), options_.calibration, execution_, callbacks_);
  measure_layers("measuring Fisher damage", [&](const std::string& layer, const auto& execution,
                                                const experiment::Callbacks&) {
    std::map<std::string, double> found;
    for (const std::string& format : formats) {
      if (is_known(layer, format)) continue;
      Candidate one;
      one.formats[layer][compress::TensorRole::Weights] = format;
      io::Model rounded = build_candidate(data_, one, options_.seed, execution);
      if (format != "float") compress::pack_model(rounded, false);
      if (format != "float" && rounded.graph.nodes_of("decode").empty()) continue;
      if (format != "float") compress::unpack_model(rounded);
      found[fisher_name(layer, format)] = fisher_damage(information, layer, data_.base(), rounded);
    }
    return found;
  });
}

train::Answers FormatStarts::answer(const io::Model& model,
                                    const engine::ExecutionOptions& execution,
                                    const experiment::Callbacks& callbacks) const {
  train::Classifier classifier(model, {.execution = execution});
  return train::answer_all(
      classifier, *data_.calibration(),
      {.progress = [&](std::int64_t, std::int64_t) { return !callbacks.stops(); }});
}

// What weights have where all layers have the same format, the fewest bits first.
std::vector<double> FormatStarts::uniform_bits(const PrecisionCosts& costs) const {
  std::set<double> bits;
  for (const TensorChoices& tensors : file_.precision->tensors) {
    if (!has_weights(tensors)) continue;
    for (const FormatChoices& family : tensors.families)
      for (const std::string& format : family.formats) {
        Candidate alike;
        for (const std::string& layer : layers_)
          alike.formats[layer][compress::TensorRole::Weights] = format;
        bits.insert(costs.average(alike).weights);
      }
  }
  return {bits.begin(), bits.end()};
}

// The best by damage within the budget, or within some where there is none. A front is compared
// with uniform formats at equal bits, so that it begins at those, too.
void FormatStarts::find_starts(const PrecisionCosts& costs) {
  const auto add = [&](const BitBudget& within) {
    for (const Allocation* allocation : {&*allocation_, &*fisher_allocation_})
      if (auto point = allocation->best(within))
        if (std::ranges::find(starts_, *point) == starts_.end())
          starts_.push_back(std::move(*point));
  };
  if (has_budget() && options_.front.empty()) return add(budget_);
  const double least_data = *allocation_->smallest().data;
  // Far ones first, for a study of few trials.
  std::vector<double> limits{4.0, 2.0, 8.0, 3.0, 1.5, 6.0, 2.5};
  if (!options_.front.empty())
    for (const double bits : uniform_bits(costs))
      if (bits <= kManyBits) limits.push_back(bits);
  for (const double bits : limits)
    if (bits <= budget_.weights.value_or(bits))
      add({.weights = bits,
           .data = budget_.data.value_or(std::max({kFewDataBits, bits, least_data + kBitShare}))});
}

// What a point is drawn within. For a front, weights have a budget of their own each time, and data
// where its bits count, too.
BitBudget FormatStarts::budget_of(int number) const {
  if (options_.front.empty()) return budget_;
  const auto raised = [](std::optional<double> bits) { return bits.value_or(0) + kBitShare; };
  const BitBudget largest = allocation_->largest(), smallest = allocation_->smallest();
  BitBudget least{.weights = raised(smallest.weights)};
  BitBudget most{.weights = budget_.weights.value_or(std::min(kManyBits, *largest.weights))};
  const bool counts_data = options_.front == "bits" || options_.front == "data-bits" ||
                           options_.front == "bit-operations";
  if (counts_data) {
    least.data = raised(smallest.data);
    most.data = budget_.data.value_or(std::min(kManyBits, *largest.data));
  }
  BitBudget budget = front_budget(least, most, number);
  if (!counts_data) budget.data = budget_.data;
  return budget;
}

std::optional<Allocation::Point> FormatStarts::propose(const std::string& sampler,
                                                       int number) const {
  if (!allocation_ || sampler.starts_with("grid")) return std::nullopt;
  if (static_cast<std::size_t>(number) < starts_.size())
    return starts_[static_cast<std::size_t>(number)];
  if (!has_budget() && options_.front.empty()) return std::nullopt;
  const bool learns = !sampler.starts_with("random");
  if (learns && number >= kFirstDrawn && number % 2 == 1) return std::nullopt;
  return allocation_->sample(budget_of(number), options_.seed + static_cast<std::uint64_t>(number));
}

}  // namespace lathe::search
