#include "lathe/search/finalist_front.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::search {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// What a seed makes of all finalists alike: they see the same rows in the same order.
std::vector<double> seed_effects(const std::vector<Finalist>& finalists, std::size_t seeds) {
  std::vector<double> effects;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    std::vector<double> shifts;
    for (const Finalist& each : finalists) shifts.push_back(each.losses[seed] - each.mean_loss());
    effects.push_back(median(std::move(shifts)));
  }
  return effects;
}

// Seeds are few, so that all finalists tell together how far they are apart. Their median: one that
// training hardly holds together has a variance that says nothing of the others. That of a
// chi-square is below its mean (by Wilson and Hilferty), much so of few seeds.
double error_of_differences(const std::vector<Finalist>& finalists) {
  const std::size_t seeds = finalists.empty() ? 0 : finalists.front().losses.size();
  if (seeds < 2) return 0;
  const std::vector<double> effects = seed_effects(finalists, seeds);
  const double freedom = static_cast<double>(seeds - 1);
  std::vector<double> variances;
  for (const Finalist& each : finalists) {
    double squares = 0;
    for (std::size_t seed = 0; seed < seeds; ++seed)
      squares += std::pow(each.losses[seed] - each.mean_loss() - effects[seed], 2);
    variances.push_back(squares / freedom);
  }
  const double usual = median(std::move(variances)) / std::pow(1 - 2 / (9 * freedom), 3);
  return std::sqrt(2 * usual / static_cast<double>(seeds));
}

}  // namespace

FinalistFront::FinalistFront(const std::vector<Finalist>& finalists, std::string cost)
    : finalists_(finalists), cost_(std::move(cost)), error_(error_of_differences(finalists)) {}

bool FinalistFront::has(const Finalist& finalist) const {
  return std::ranges::none_of(finalists_, [&](const Finalist& other) {
    return cost_of(other) <= cost_of(finalist) && other.mean_loss() + error_ < finalist.mean_loss();
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
