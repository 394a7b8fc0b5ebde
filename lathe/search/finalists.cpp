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

// The most that each part of a front's costs has, as many parts as there are finalists: of each the
// best is trained again. Of a single training luck is more than what a bit is worth, so that a
// lucky one that costs little would leave none of those that cost more. A part ends wherever a
// uniform format lies, or the best below that would have no rival of as many bits; between those
// ends each part is as many times the one before.
std::vector<double> part_ends(const std::vector<Finalist>& trials, const SearchOptions& options) {
  std::set<double> ends;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Finalist& each : trials) {
    const double cost = each.costs.at(options.front);
    least = std::min(least, cost);
    most = std::max(most, cost);
    if (each.is_uniform && options.tries_uniform) ends.insert(cost);
  }
  ends.insert(most);
  struct Stretch {
    double begin = 0, end = 0;
    int parts = 1;
    double width() const { return std::log(end / begin) / parts; }
  };
  std::vector<Stretch> stretches;
  for (const double end : ends)
    stretches.push_back({.begin = stretches.empty() ? least : stretches.back().end, .end = end});
  for (auto count = std::ssize(stretches); count < options.finalists; ++count)
    ++std::ranges::max_element(stretches, {}, &Stretch::width)->parts;
  std::vector<double> result;
  for (const Stretch& each : stretches) {
    for (int part = 1; part < each.parts; ++part)
      result.push_back(each.begin * std::exp(part * each.width()));
    result.push_back(each.end);  // exactly
  }
  return result;
}

// The part of a front that a trial belongs to; nothing where there is no front.
std::function<int(const Finalist&)> front_parts(const std::vector<Finalist>& trials,
                                                const SearchOptions& options) {
  if (options.front.empty()) return {};
  return [&options, ends = part_ends(trials, options)](const Finalist& each) {
    return static_cast<int>(std::ranges::lower_bound(ends, each.costs.at(options.front)) -
                            ends.begin());
  };
}

// How good a trial is. Those of a front have losses, unless a search of before they were kept goes
// on.
std::function<double(const Finalist&)> merit(const std::vector<Finalist>& trials,
                                             const SearchOptions& options) {
  if (!options.front.empty() &&
      std::ranges::all_of(trials, [](const Finalist& each) { return each.found_loss.has_value(); }))
    return [](const Finalist& each) { return -*each.found_loss; };
  return [](const Finalist& each) { return *each.found - each.cost; };
}

}  // namespace

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Finalist::mean() const {
  return search::mean(accuracies);
}
double Finalist::mean_loss() const {
  return search::mean(losses);
}

std::vector<Finalist> choose_finalists(std::vector<Finalist> trials, const SearchOptions& options) {
  std::vector<Finalist> best = each_candidate_once(std::move(trials));
  std::ranges::stable_sort(best, std::greater(), merit(best, options));
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
