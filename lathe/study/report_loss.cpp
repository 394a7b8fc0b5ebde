#include "lathe/study/report_loss.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lathe::study {

std::optional<int> last_step(const TrialRecord& trial) {
  if (trial.intermediate_values.empty()) return {};
  return trial.intermediate_values.rbegin()->first;
}

std::optional<Losses> report_loss(const TrialRecord& trial, int step,
                                  const std::vector<Direction>& directions) {
  Losses losses;
  if (directions.size() == 1) {
    const auto found = trial.intermediate_values.find(step);
    if (found == trial.intermediate_values.end()) return {};
    losses = {found->second};
  } else {
    losses = report_at(trial, step);
  }
  if (losses.size() != directions.size()) return {};
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (directions[i] == Direction::Maximize) losses[i] = -losses[i];
  return losses;
}

bool has_nan(const Losses& losses) {
  return std::any_of(losses.begin(), losses.end(), [](double loss) { return std::isnan(loss); });
}

std::vector<double> rank_losses(std::span<const Losses> points) {
  std::vector<double> scores;
  if (points.empty()) return scores;
  if (points[0].size() == 1) {
    for (const Losses& point : points) scores.push_back(point[0]);
    return scores;
  }
  const std::vector<int> ranks = non_dominated_ranks(points);
  std::map<int, std::vector<std::size_t>> fronts;
  for (std::size_t i = 0; i < points.size(); ++i) fronts[ranks[i]].push_back(i);
  scores.resize(points.size());
  for (const auto& [rank, members] : fronts) {
    std::vector<Losses> front;
    for (const std::size_t member : members) front.push_back(points[member]);
    const std::vector<double> distances = crowding_distances(front);
    for (std::size_t i = 0; i < members.size(); ++i)
      scores[members[i]] = rank + 0.5 / (1 + distances[i]);
  }
  return scores;
}

bool JudgedSteps::includes_last(const TrialRecord& trial) const {
  const std::optional<int> last = last_step(trial);
  if (!last || *last < warmup) return false;
  const int due = (*last - warmup) / interval * interval + warmup;
  if (trial.intermediate_values.size() < 2) return true;
  return std::next(trial.intermediate_values.rbegin())->first < due;
}

}  // namespace lathe::study
