#include "lathe/search/front_comparison.h"

#include <algorithm>

#include "lathe/search/finalist_front.h"

namespace lathe::search {
namespace {

bool is_tested(const Finalist& finalist) {
  return !finalist.whole_accuracies.empty();
}

std::string name_of(const Finalist& finalist) {
  return finalist.is_uniform ? uniform_text(finalist.candidate)
                             : fmt::format("mixed, {} {}", finalist.sampler, finalist.trial);
}

// Those that an answer to uniform formats is above, and how far it is below any.
struct Tally {
  int above = 0, alike = 0, compared = 0;
  double below = 0;

  void add(const UniformRival& rival, const Finalist* answer) {
    const std::optional<double> gain = rival.gain_of(answer);
    if (!gain) return;
    ++compared;
    above += *gain > 0;
    alike += answer == rival.uniform;
    below = std::max(below, -*gain);
  }
};

}  // namespace

UniformFormats uniform_formats(const Candidate& candidate) {
  if (candidate.formats.empty()) return {"float", "float"};
  const compress::RoleFormats& formats = candidate.formats.begin()->second;
  const auto of = [&](compress::TensorRole role) {
    const auto found = formats.find(role);
    return found == formats.end() ? std::string("float") : found->second;
  };
  return {of(compress::TensorRole::Weights), of(compress::TensorRole::Inputs)};
}

std::string uniform_text(const Candidate& candidate) {
  const auto [weights, data] = uniform_formats(candidate);
  return weights == data ? weights : fmt::format("{} of {}", weights, data);
}

std::optional<double> UniformRival::gain_of(const Finalist* other) const {
  if (other == nullptr) return std::nullopt;
  return is_tested(*uniform) && is_tested(*other)
             ? search::mean(other->whole_accuracies) - search::mean(uniform->whole_accuracies)
             : other->mean() - uniform->mean();
}

std::vector<UniformRival> compare_with_uniform(const SearchResult& result) {
  std::vector<UniformRival> rivals;
  if (result.front.empty()) return rivals;
  const FinalistFront front(result.finalists, result.front);
  const auto cost_of = [&](const Finalist& each) { return each.costs.at(result.front); };
  for (const Finalist& uniform : result.finalists) {
    if (!uniform.is_uniform) continue;
    const double cost = cost_of(uniform);
    rivals.push_back(
        {.uniform = &uniform,
         .front = front.has(uniform)
                      ? &uniform
                      : front.best_within(cost, [](const Finalist&) { return true; }),
         .mixed = front.best_within(cost, [](const Finalist& each) { return !each.is_uniform; })});
  }
  std::ranges::stable_sort(rivals, {},
                           [&](const UniformRival& rival) { return cost_of(*rival.uniform); });
  return rivals;
}

report::Table front_table(const std::vector<UniformRival>& rivals, const std::string& cost) {
  report::Table table({"all layers alike", cost, "loss held out", "test", "the front there", cost,
                       "loss held out", "test", "points above", "best mixed", cost, "loss held out",
                       "test", "points above"});
  for (const UniformRival& rival : rivals) {
    std::vector<std::string> row{name_of(*rival.uniform)};
    const auto add_figures = [&](const Finalist& each) {
      row.insert(
          row.end(),
          {fmt::format("{:.6g}", each.costs.at(cost)), fmt::format("{:.4f}", each.mean_loss()),
           is_tested(each) ? fmt::format("{:.4f}", mean(each.whole_accuracies)) : "-"});
    };
    const auto add_answer = [&](const Finalist* answer) {
      if (answer == nullptr) {
        row.insert(row.end(), {"-", "-", "-", "-", "-"});
        return;
      }
      row.push_back(answer == rival.uniform ? "itself" : name_of(*answer));
      add_figures(*answer);
      row.push_back(fmt::format("{:+.3f}", 100 * *rival.gain_of(answer)));
    };
    add_figures(*rival.uniform);
    add_answer(rival.front);
    add_answer(rival.mixed);
    table.row(std::move(row));
  }
  return table;
}

std::string front_summary(const std::vector<UniformRival>& rivals) {
  Tally front, mixed;
  for (const UniformRival& rival : rivals) {
    front.add(rival, rival.front);
    mixed.add(rival, rival.mixed);
  }
  return fmt::format(
      "the front is above {} of {} uniform formats, goes through {} of them, and is at most {:.3f} "
      "point below; mixed formats alone are above {} of the {} that cost no less, and at most "
      "{:.3f} point below",
      front.above, front.compared, front.alike, 100 * front.below, mixed.above, mixed.compared,
      100 * mixed.below);
}

}  // namespace lathe::search
