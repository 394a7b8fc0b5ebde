#include "lathe/search/front_charts.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lathe/report/layered_chart.h"
#include "lathe/search/finalist_front.h"

namespace lathe::search {
namespace {

// What is further below the best would leave no room for the rest.
constexpr double kRange = 0.02;
constexpr int kWide = 900, kRowHeight = 22, kHeadAndFoot = 120;

double accuracy_of(const Finalist& finalist) {
  return mean(finalist.whole_accuracies.empty() ? finalist.accuracies : finalist.whole_accuracies);
}
const char* accuracy_name(const Finalist& finalist) {
  return finalist.whole_accuracies.empty() ? "accuracy of rows held out, mean of seeds"
                                           : "test accuracy, mean of seeds";
}

std::string left_out(std::size_t count) {
  return count == 0 ? "" : fmt::format(", {} further below left out", count);
}

// The format of what all layers of all rivals read, for the axis to tell once; none where they
// differ.
std::optional<std::string> common_data(const std::vector<UniformRival>& rivals) {
  std::set<std::string> found;
  for (const UniformRival& rival : rivals)
    found.insert(uniform_formats(rival.uniform->candidate).data);
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

}  // namespace

std::string finalists_chart(const SearchResult& result) {
  using Mark = report::Layer::Mark;
  report::Layer uniform{.name = "all layers alike"}, mixed{.name = "mixed"},
      on_front{.name = "on the front", .mark = Mark::Rings, .size = 7},
      line{.name = "best by losses held out", .mark = Mark::Steps};
  const FinalistFront front(result.finalists, result.front);
  std::vector<const Finalist*> by_cost;
  for (const Finalist& each : result.finalists) by_cost.push_back(&each);
  const auto cost_of = [&](const Finalist* each) { return each->costs.at(result.front); };
  std::ranges::stable_sort(by_cost, {}, cost_of);
  double best = 0;
  for (const Finalist* each : by_cost) best = std::max(best, accuracy_of(*each));
  std::size_t below = 0;
  for (const Finalist* each : by_cost) {
    const double cost = cost_of(each);
    const auto add = [&](report::Layer& layer, const Finalist& point) {
      layer.x.push_back(cost);
      layer.y.push_back(accuracy_of(point));
    };
    const Finalist* within = front.best_within(cost, [](const Finalist&) { return true; });
    if (accuracy_of(*within) >= best - kRange) add(line, *within);
    if (accuracy_of(*each) < best - kRange) {
      ++below;
      continue;
    }
    report::Layer& dots = each->is_uniform ? uniform : mixed;
    add(dots, *each);
    dots.tooltips.push_back(fmt::format("{}: {:.4f}, {} {:.6g}",
                                        each->is_uniform
                                            ? uniform_text(each->candidate)
                                            : fmt::format("{} {}", each->sampler, each->trial),
                                        accuracy_of(*each), result.front, cost));
    if (front.has(*each)) add(on_front, *each);
  }
  return report::layered_chart({.title = "Mixed formats and one for all layers" + left_out(below),
                                .x = {.label = result.front},
                                .y = {.label = accuracy_name(*by_cost.front())},
                                .width = kWide},
                               {line, uniform, mixed, on_front});
}

std::string rivals_chart(const std::vector<UniformRival>& rivals, const std::string& cost) {
  report::Layer uniform{.name = "all layers alike"}, mixed{.name = "best mixed of no more"},
      front{.name = "the front there", .mark = report::Layer::Mark::Rings, .size = 7};
  double best = 0;
  for (const UniformRival& rival : rivals)
    for (const Finalist* each : {rival.uniform, rival.front, rival.mixed})
      if (each != nullptr) best = std::max(best, accuracy_of(*each));
  report::Chart chart{.title = {},
                      .x = {.label = accuracy_name(*rivals.front().uniform)},
                      .y = {.label = fmt::format("all layers, {}", cost)},
                      .width = kWide};
  const std::optional<std::string> data = common_data(rivals);
  if (data) chart.y.label += ", data " + *data;
  std::size_t below = 0;
  // The cheapest is the uppermost.
  for (std::size_t row = 0; row < rivals.size(); ++row) {
    const UniformRival& rival = rivals[rivals.size() - 1 - row];
    const Candidate& candidate = rival.uniform->candidate;
    chart.y.categories.push_back(fmt::format(
        "{} {:.2f}", data ? uniform_formats(candidate).weights : uniform_text(candidate),
        rival.uniform->costs.at(cost)));
    for (const auto& [layer, each] :
         {std::pair(&uniform, rival.uniform), std::pair(&mixed, rival.mixed),
          std::pair(&front, rival.front)}) {
      if (each == nullptr) continue;
      if (accuracy_of(*each) < best - kRange) {
        below += layer == &uniform;
        continue;
      }
      layer->x.push_back(accuracy_of(*each));
      layer->y.push_back(static_cast<double>(row));
    }
  }
  chart.title = "Each uniform format and the front at its cost" + left_out(below);
  chart.height = kHeadAndFoot + kRowHeight * static_cast<int>(rivals.size());
  return report::layered_chart(chart, {uniform, mixed, front});
}

}  // namespace lathe::search
