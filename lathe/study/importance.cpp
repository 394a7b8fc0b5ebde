#include "lathe/study/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "lathe/core/error.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/report_loss.h"
#include "lathe/study/uniform_value.h"
#include "lathe/study/unit_space.h"

namespace lathe::study {

namespace {

constexpr int kMostCells = 50;
constexpr std::size_t kFewest = 4;

// Where a parameter's values lie on a grid: a cell for each value if there are few.
struct Column {
  DistributionPtr distribution;
  int latest = -1;
  std::vector<std::pair<int, double>> values = {};  // trial by order of merit, internal value
};

int num_cells(const Distribution& distribution) {
  const auto count = num_values(distribution);
  return count && *count <= kMostCells ? static_cast<int>(*count) : kMostCells;
}

// The density of some values, one number per cell. One more value, spread evenly, keeps every
// cell above zero. Numbers are blurred by Scott's rule, but by no less than half a cell; choices
// have no neighbours to blur into.
std::vector<double> density(const Distribution& distribution, std::span<const double> units) {
  const int cells = num_cells(distribution);
  std::vector<double> result(cells, 1.0 / cells);
  const auto cell_of = [&](double unit) {
    return std::clamp(static_cast<int>(unit * cells), 0, cells - 1);
  };
  if (num_choices(distribution) > 0) {
    for (const double unit : units) result[cell_of(unit)] += 1;
  } else {
    const auto count = static_cast<double>(units.size());
    double mean = 0;
    for (const double unit : units) mean += unit / count;
    double variance = 0;
    for (const double unit : units) variance += (unit - mean) * (unit - mean) / count;
    const double width = std::max(1.059 * std::sqrt(variance) * std::pow(count, -0.2), 0.5 / cells);
    std::map<int, double> counts;
    for (const double unit : units) ++counts[cell_of(unit)];
    for (const auto& [cell, times] : counts) {
      std::vector<double> kernel(cells);
      double sum = 0;
      for (int i = 0; i < cells; ++i) {
        const double distance = (i - cell) / (cells * width);
        sum += kernel[i] = std::exp(-0.5 * distance * distance);
      }
      for (int i = 0; i < cells; ++i) result[i] += times * kernel[i] / sum;
    }
  }
  for (double& each : result) each /= static_cast<double>(units.size()) + 1;
  return result;
}

double divergence(const Distribution& distribution, std::span<const double> good,
                  std::span<const double> all) {
  const std::vector<double> p = density(distribution, good);
  const std::vector<double> q = density(distribution, all);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += q[i] * std::pow(p[i] / q[i] - 1, 2);
  return sum;
}

// Complete trials, the best first.
std::vector<const TrialRecord*> by_merit(const History& history, std::optional<int> objective) {
  std::vector<const TrialRecord*> trials;
  std::vector<Losses> losses;
  for (const TrialRecord& trial : history.trials()) {
    if (trial.state != TrialState::Complete) continue;
    if (trial.values.size() != history.directions().size()) continue;
    trials.push_back(&trial);
    losses.push_back(to_losses(trial.values, history.directions()));
    if (objective) losses.back() = {losses.back()[*objective]};
  }
  const std::vector<double> scores = rank_losses(losses);
  std::vector<std::size_t> order(trials.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  // Without any difference no trial is better than another.
  if (!order.empty() && scores[order.front()] == scores[order.back()]) return {};
  std::vector<const TrialRecord*> result;
  for (const std::size_t index : order) result.push_back(trials[index]);
  return result;
}

}  // namespace

std::vector<std::pair<std::string, double>> parameter_importance(const History& history,
                                                                 const ImportanceOptions& options) {
  if (options.objective && (*options.objective < 0 ||
                            *options.objective >= static_cast<int>(history.directions().size())))
    fail("objective {}: expected 0 to {}", *options.objective, history.directions().size() - 1);
  const std::vector<const TrialRecord*> trials = by_merit(history, options.objective);
  if (trials.size() < kFewest) return {};

  std::map<std::string, Column, std::less<>> columns;
  for (std::size_t merit = 0; merit < trials.size(); ++merit) {
    for (const Parameter& parameter : trials[merit]->parameters) {
      Column& column = columns[parameter.name];
      column.values.push_back({static_cast<int>(merit), parameter.value});
      if (trials[merit]->number <= column.latest) continue;
      column.latest = trials[merit]->number;
      column.distribution = parameter.distribution;
    }
  }
  std::vector<std::pair<std::string, double>> shares;
  double total = 0;
  for (const auto& [name, column] : columns) {
    double share = 0;
    if (!is_single(*column.distribution) && column.values.size() >= kFewest) {
      std::vector<double> units;
      for (const auto& [merit, value] : column.values)
        units.push_back(to_unit(*column.distribution, value));
      const auto num_good = std::max<std::size_t>(
          2, static_cast<std::size_t>(
                 std::ceil(options.best_share * static_cast<double>(units.size()))));
      share = divergence(*column.distribution, std::span(units).first(num_good), units) *
              static_cast<double>(units.size()) / static_cast<double>(trials.size());
    }
    shares.push_back({name, share});
    total += share;
  }
  if (!(total > 0)) return {};
  for (auto& [name, share] : shares) share /= total;
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

}  // namespace lathe::study
