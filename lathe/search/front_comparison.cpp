#include "lathe/search/front_comparison.h"

#include <algorithm>

#include "lathe/search/search_report.h"

namespace lathe::search {
namespace {

bool is_tested(const Finalist& finalist) {
  return !finalist.whole_accuracies.empty();
}

// What all layers have; data is told where it has a format of its own.
std::string format_text(const Candidate& candidate) {
  if (candidate.formats.empty()) return "float";
  const compress::RoleFormats& formats = candidate.formats.begin()->second;
  const auto of = [&](compress::TensorRole role) {
    const auto found = formats.find(role);
    return found == formats.end() ? std::string("float") : found->second;
  };
  const std::string weights = of(compress::TensorRole::Weights);
  const std::string data = of(compress::TensorRole::Inputs);
  return weights == data ? weights : fmt::format("{} of {}", weights, data);
}

}  // namespace

std::optional<double> UniformRival::gain() const {
  if (mixed == nullptr) return std::nullopt;
  return is_tested(*uniform) && is_tested(*mixed)
             ? search::mean(mixed->whole_accuracies) - search::mean(uniform->whole_accuracies)
             : mixed->mean() - uniform->mean();
}

std::vector<UniformRival> compare_with_uniform(const SearchResult& result) {
  std::vector<UniformRival> rivals;
  if (result.front.empty()) return rivals;
  const auto cost_of = [&](const Finalist& each) { return each.costs.at(result.front); };
  for (const Finalist& uniform : result.finalists) {
    if (!uniform.is_uniform) continue;
    UniformRival& rival = rivals.emplace_back(UniformRival{.uniform = &uniform});
    for (const Finalist& mixed : result.finalists) {
      if (mixed.is_uniform || cost_of(mixed) > cost_of(uniform)) continue;
      if (rival.mixed == nullptr || mixed.mean() > rival.mixed->mean()) rival.mixed = &mixed;
    }
  }
  std::ranges::stable_sort(rivals, {},
                           [&](const UniformRival& rival) { return cost_of(*rival.uniform); });
  return rivals;
}

report::Table front_table(const std::vector<UniformRival>& rivals, const std::string& cost) {
  report::Table table({"all layers alike", cost, "held out", "test", "best mixed of no more", cost,
                       "held out", "test", "gain in points"});
  const auto cells = [&](const Finalist& each) {
    return std::vector<std::string>{
        fmt::format("{:.6g}", each.costs.at(cost)), fmt::format("{:.4f}", each.mean()),
        is_tested(each) ? fmt::format("{:.4f}", mean(each.whole_accuracies)) : "-"};
  };
  for (const UniformRival& rival : rivals) {
    std::vector<std::string> row{format_text(rival.uniform->candidate)};
    const auto add = [&](std::vector<std::string> more) {
      row.insert(row.end(), more.begin(), more.end());
    };
    add(cells(*rival.uniform));
    if (rival.mixed == nullptr) {
      add({"-", "-", "-", "-", "-"});
    } else {
      add({fmt::format("{} {}", rival.mixed->sampler, rival.mixed->trial)});
      add(cells(*rival.mixed));
      add({fmt::format("{:+.3f}", 100 * *rival.gain())});
    }
    table.row(std::move(row));
  }
  return table;
}

std::string front_summary(const std::vector<UniformRival>& rivals) {
  int above = 0, compared = 0;
  double below = 0;
  for (const UniformRival& rival : rivals) {
    const std::optional<double> gain = rival.gain();
    if (!gain) continue;
    ++compared;
    above += *gain > 0;
    below = std::max(below, -*gain);
  }
  return fmt::format(
      "mixed formats are above {} of {} uniform ones, and at most {:.3f} point below", above,
      compared, 100 * below);
}

}  // namespace lathe::search
