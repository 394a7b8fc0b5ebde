#include "lathe/search/finalist_front.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::search {
namespace {

// Differences of fewer standard errors are chance's: one of twenty is larger.
constexpr double kBeyondChance = 2;

double variance(const Finalist& finalist) {
  const double mean = finalist.mean_loss();
  double squares = 0;
  for (const double loss : finalist.losses) squares += (loss - mean) * (loss - mean);
  return squares / static_cast<double>(finalist.losses.size() - 1);
}

// Seeds are few, so that all finalists tell together how far they are apart. Their median: one that
// training hardly holds together has a variance that says nothing of the others. That of a
// chi-square is below its mean (by Wilson and Hilferty), much so of few seeds.
double error_of_differences(const std::vector<Finalist>& finalists) {
  std::vector<double> variances;
  std::size_t seeds = 0;
  for (const Finalist& each : finalists) {
    if (each.losses.size() < 2) continue;
    seeds = each.losses.size();
    variances.push_back(variance(each));
  }
  if (variances.empty()) return 0;
  const auto middle = variances.begin() + std::ssize(variances) / 2;
  std::ranges::nth_element(variances, middle);
  const double freedom = static_cast<double>(seeds - 1);
  const double usual = *middle / std::pow(1 - 2 / (9 * freedom), 3);
  return std::sqrt(2 * usual / static_cast<double>(seeds));
}

}  // namespace

FinalistFront::FinalistFront(const std::vector<Finalist>& finalists, std::string cost)
    : finalists_(finalists), cost_(std::move(cost)), error_(error_of_differences(finalists)) {}

bool FinalistFront::has(const Finalist& finalist) const {
  return std::ranges::none_of(finalists_, [&](const Finalist& other) {
    return cost_of(other) <= cost_of(finalist) &&
           other.mean_loss() + kBeyondChance * error_ < finalist.mean_loss();
  });
}

const Finalist* FinalistFront::best_within(
    double cost, const std::function<bool(const Finalist&)>& is_meant) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Finalist& each : finalists_)
    if (cost_of(each) <= cost && is_meant(each)) least = std::min(least, each.mean_loss());
  const Finalist* best = nullptr;
  for (const Finalist& each : finalists_) {
    if (cost_of(each) > cost || !is_meant(each) || each.mean_loss() > least + error_) continue;
    if (best == nullptr || cost_of(each) > cost_of(*best) ||
        (cost_of(each) == cost_of(*best) && each.mean_loss() < best->mean_loss()))
      best = &each;
  }
  return best;
}

}  // namespace lathe::search
