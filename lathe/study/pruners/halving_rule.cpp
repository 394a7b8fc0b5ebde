#include "lathe/study/pruners/halving_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lathe/study/json_text.h"
#include "lathe/study/report_loss.h"

namespace lathe::study {

namespace {

std::string rung_key(int rung) {
  return fmt::format("completed_rung_{}", rung);
}

int next_rung(const TrialRecord& trial) {
  int rung = 0;
  while (trial.system_attributes.contains(rung_key(rung))) ++rung;
  return rung;
}

// The study's own values, a number or a list of them; nothing where somebody else wrote something
// that is neither.
std::optional<Losses> rung_loss(const TrialRecord& trial, const std::string& key,
                                const std::vector<Direction>& directions) {
  const auto found = trial.system_attributes.find(key);
  if (found == trial.system_attributes.end()) return {};
  const nlohmann::json json = parse_json(found->second);
  std::vector<double> values;
  if (json.is_number()) values.push_back(json.get<double>());
  if (json.is_array())
    for (const auto& value : json)
      if (value.is_number()) values.push_back(value.get<double>());
  if (values.size() != directions.size()) return {};
  return to_losses(values, directions);
}

std::string rung_text(const Losses& losses, const std::vector<Direction>& directions) {
  const Losses values = to_losses(losses, directions);  // negating twice
  return to_json_text(values.size() == 1 ? nlohmann::json(values[0]) : nlohmann::json(values));
}

// Everything that entered a rung, by trial.
struct Rung {
  std::vector<Losses> losses;
  std::vector<int> numbers;
};

Rung read_rung(const History& history, int rung, int except, const HalvingRule::IsRival& is_rival) {
  const std::string key = rung_key(rung);
  Rung result;
  for (const TrialRecord& other : history.trials()) {
    if (other.number == except || !other.system_attributes.contains(key)) continue;
    if (!is_rival(other.number)) continue;
    auto loss = rung_loss(other, key, history.directions());
    if (!loss) continue;
    result.losses.push_back(std::move(*loss));
    result.numbers.push_back(other.number);
  }
  return result;
}

}  // namespace

Verdict HalvingRule::judge(const History& history, const TrialRecord& trial,
                           Attributes& system_attributes, const IsRival& is_rival) const {
  const std::optional<int> step = last_step(trial);
  if (!step) return Verdict::Continue;
  const std::optional<Losses> loss = report_loss(trial, *step, history.directions());
  if (!loss) return Verdict::Continue;
  const Verdict stop = can_pause ? Verdict::Pause : Verdict::Prune;
  for (int rung = next_rung(trial);; ++rung) {
    if (*step < min_resource * std::pow(factor, rate + rung)) return Verdict::Continue;
    if (has_nan(*loss)) return Verdict::Prune;
    system_attributes[rung_key(rung)] = rung_text(*loss, history.directions());

    Rung rivals = read_rung(history, rung, trial.number, is_rival);
    rivals.losses.push_back(*loss);
    const auto count = static_cast<int>(rivals.losses.size());
    if (count <= bootstrap) return stop;
    // Without pausing the first few cannot wait for others: the best so far goes on.
    const int num_best = can_pause ? count / factor : std::max(count / factor, 1);
    if (num_best == 0) return stop;
    std::vector<double> scores = rank_losses(rivals.losses);
    const double own = scores.back();
    std::nth_element(scores.begin(), scores.begin() + num_best - 1, scores.end());
    if (own > scores[num_best - 1]) return stop;
  }
}

std::optional<int> HalvingRule::promote(const History& history, const IsRival& is_rival) const {
  // Paused trials by the rung they wait in, the highest first.
  std::map<int, std::vector<int>, std::greater<>> waiting;
  for (const TrialRecord& trial : history.trials()) {
    if (trial.state != TrialState::Waiting || !is_rival(trial.number)) continue;
    const auto paused = trial.system_attributes.find("lathe:paused");
    if (paused == trial.system_attributes.end() || paused->second != "true") continue;
    if (const int rung = next_rung(trial); rung > 0) waiting[rung - 1].push_back(trial.number);
  }
  for (const auto& [rung, numbers] : waiting) {
    const Rung rivals = read_rung(history, rung, -1, is_rival);
    const int num_best = static_cast<int>(rivals.losses.size()) / factor;
    if (num_best == 0) continue;
    const std::vector<double> scores = rank_losses(rivals.losses);
    std::vector<std::pair<double, int>> order;
    for (std::size_t i = 0; i < scores.size(); ++i) order.push_back({scores[i], rivals.numbers[i]});
    std::sort(order.begin(), order.end());
    for (int i = 0; i < num_best; ++i)
      if (std::find(numbers.begin(), numbers.end(), order[i].second) != numbers.end())
        return order[i].second;
  }
  return {};
}

std::optional<int> longest_known_step(const History& history) {
  for (const TrialRecord& trial : history.trials())
    if (trial.state == TrialState::Complete && !trial.intermediate_values.empty())
      return last_step(trial);
  return {};
}

}  // namespace lathe::study
