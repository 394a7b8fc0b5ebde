#include "lathe/search/finalists.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace lathe::search {
namespace {

std::vector<Finalist> each_candidate_once(std::vector<Finalist> trials) {
  std::vector<Finalist> once;
  for (Finalist& trial : trials) {
    const auto known = std::ranges::find(once, trial.candidate, &Finalist::candidate);
    if (known == once.end())
      once.push_back(std::move(trial));
    else
      known->is_uniform = known->is_uniform || trial.is_uniform;
  }
  return once;
}

// Parts of a front's costs, each as many times the one before, as many as there are finalists: of
// each the best is trained again. Of a single training luck is more than what a bit is worth, so
// that a lucky one that costs little would leave none of those that cost more.
std::function<int(const Finalist&)> front_parts(const std::vector<Finalist>& trials,
                                                const SearchOptions& options) {
  if (options.front.empty()) return {};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Finalist& each : trials) {
    least = std::min(least, each.costs.at(options.front));
    most = std::max(most, each.costs.at(options.front));
  }
  return [&options, least, most](const Finalist& each) {
    const double cost = each.costs.at(options.front);
    const double share = most > least ? std::log(cost / least) / std::log(most / least) : 0;
    return std::min(static_cast<int>(share * options.finalists), options.finalists - 1);
  };
}

}  // namespace

double Finalist::mean() const {
  return std::accumulate(accuracies.begin(), accuracies.end(), 0.0) /
         static_cast<double>(accuracies.size());
}

std::vector<Finalist> choose_finalists(std::vector<Finalist> trials, const SearchOptions& options) {
  std::vector<Finalist> best = each_candidate_once(std::move(trials));
  std::ranges::stable_sort(best, std::greater(),
                           [](const Finalist& each) { return each.found - each.cost; });
  std::set<int> taken;
  const std::function<int(const Finalist&)> part = front_parts(best, options);
  std::erase_if(best, [&](const Finalist& each) {
    if (each.is_uniform && options.tries_uniform) return false;
    return !taken.insert(part ? part(each) : static_cast<int>(taken.size())).second ||
           std::ssize(taken) > options.finalists;
  });
  return best;
}

}  // namespace lathe::search
