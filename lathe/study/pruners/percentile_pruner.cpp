// Stops a trial whose best report so far is worse than a percentile of what complete trials had
// reported at the same step. The median is the 50th.
#include <algorithm>
#include <cmath>

#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/pruners/pruner.h"
#include "lathe/study/report_loss.h"

namespace lathe::study {

namespace {

// Between two neighbours a straight line, computed from the nearer end as NumPy does, so that a
// value equal to the percentile compares as it does there.
double percentile_of(std::vector<double> values, double percentile) {
  std::sort(values.begin(), values.end());
  const double place = static_cast<double>(values.size() - 1) * (percentile / 100);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const double low = values[below];
  const double high = values[std::min(below + 1, values.size() - 1)];
  if (low == high) return low;
  const double share = place - std::floor(place);
  return share < 0.5 ? low + (high - low) * share : high - (high - low) * (1 - share);
}

class PercentilePruner final : public Pruner {
 public:
  PercentilePruner(const OptionReader& options, double percentile)
      : percentile_(percentile),
        num_startup_(static_cast<std::size_t>(options.whole("startup", 5))),
        num_least_(static_cast<std::size_t>(options.whole("min-trials", 1, 1))),
        steps_{static_cast<int>(options.whole("warmup", 0)),
               static_cast<int>(options.whole("interval", 1, 1))} {}

  Verdict judge(const History& history, const TrialRecord& trial,
                Attributes& /*system_attributes*/) override {
    if (!steps_.includes_last(trial)) return Verdict::Continue;
    const int step = *last_step(trial);
    std::vector<Losses> rivals;
    std::size_t num_complete = 0;
    for (const int number : history.finished()) {
      const TrialRecord& other = history.trials()[number];
      if (other.state != TrialState::Complete) continue;
      ++num_complete;
      if (auto loss = report_loss(other, step, history.directions()))
        rivals.push_back(std::move(*loss));
    }
    if (num_complete == 0 || num_complete < num_startup_) return Verdict::Continue;

    std::vector<Losses> own;
    for (const auto& [own_step, value] : trial.intermediate_values) {
      auto loss = report_loss(trial, own_step, history.directions());
      if (loss && !has_nan(*loss)) own.push_back(std::move(*loss));
    }
    if (own.empty()) return Verdict::Prune;
    if (rivals.size() < num_least_) return Verdict::Continue;
    std::erase_if(rivals, has_nan);
    if (rivals.empty()) return Verdict::Continue;
    return is_worse(own, rivals, history.directions()) ? Verdict::Prune : Verdict::Continue;
  }

 private:
  bool is_worse(const std::vector<Losses>& own, const std::vector<Losses>& rivals,
                const std::vector<Direction>& directions) const {
    if (directions.size() == 1) {
      // In the study's own sense: the percentile of negated numbers may differ in the last bit.
      const double sign = directions[0] == Direction::Maximize ? -1 : 1;
      std::vector<double> values;
      for (const Losses& rival : rivals) values.push_back(sign * rival[0]);
      const double best = (*std::min_element(own.begin(), own.end()))[0];
      const double bar =
          percentile_of(std::move(values), sign > 0 ? percentile_ : 100 - percentile_);
      return best > sign * bar;
    }
    // Several objectives have no best report: the trial counts as good as the one that ranks best.
    // Only fronts count, so nobody is stopped who is not dominated.
    double best = std::numeric_limits<double>::infinity();
    double bar = best;
    for (const Losses& mine : own) {
      std::vector<Losses> all = rivals;
      all.push_back(mine);
      const std::vector<int> ranks = non_dominated_ranks(all);
      std::vector<double> scores(ranks.begin(), ranks.end());
      const double score = scores.back();
      scores.pop_back();
      if (score >= best) continue;
      best = score;
      bar = percentile_of(std::move(scores), percentile_);
    }
    return best > bar;
  }

  double percentile_;
  std::size_t num_startup_;  // complete trials before anything is pruned
  std::size_t num_least_;    // that reported at the step
  JudgedSteps steps_;
};

std::unique_ptr<Pruner> make_median(const Options& options) {
  return std::make_unique<PercentilePruner>(OptionReader(options), 50);
}

std::unique_ptr<Pruner> make_percentile(const Options& options) {
  const OptionReader reader(options);
  return std::make_unique<PercentilePruner>(reader, reader.number("percentile", 25, 0, 100));
}

const Register median{PrunerKind{
    .name = "median",
    .summary = "stop trials that are worse than half of the complete ones at the same step",
    .options = {{"startup", "complete trials before any is judged [5]"},
                {"warmup", "steps before a trial is judged [0]"},
                {"interval", "judge at every so many steps, at least 1 [1]"},
                {"min-trials", "that must have reported at the step, at least 1 [1]"}},
    .make = make_median,
}};
const Register percentile{PrunerKind{
    .name = "percentile",
    .summary = "stop trials that are not among the best percent at the same step",
    .options = {{"percentile", "of trials that may go on, 0 to 100 [25]"},
                {"startup", "complete trials before any is judged [5]"},
                {"warmup", "steps before a trial is judged [0]"},
                {"interval", "judge at every so many steps, at least 1 [1]"},
                {"min-trials", "that must have reported at the step, at least 1 [1]"}},
    .make = make_percentile,
}};

}  // namespace

}  // namespace lathe::study
