#include "lathe/study/samplers/expected_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace lathe::study {

namespace {

// A line through fewer trials says more about them than about others.
constexpr std::size_t kFewestComplete = 4;

// The final loss over the report at a step, of the trials that have both. Those were not given up
// at that step, so the line is drawn on from the good side: it never falls.
class Projection {
 public:
  void add(double report, double loss) {
    ++count_;
    x_ += report;
    y_ += loss;
    xx_ += report * report;
    xy_ += report * loss;
  }
  std::optional<double> at(double report) const {
    if (count_ < kFewestComplete) return {};
    const auto count = static_cast<double>(count_);
    const double spread = xx_ - x_ * x_ / count;
    const double slope = spread > 0 ? std::max(0.0, (xy_ - x_ * y_ / count) / spread) : 0;
    return y_ / count + slope * (report - x_ / count);
  }

 private:
  std::size_t count_ = 0;
  double x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace

double comparable_loss(const Observations& observations, std::size_t row) {
  const Observations::Row& trial = observations.rows()[row];
  const bool is_complete = trial.rank == -std::numeric_limits<double>::infinity();
  const bool is_feasible = !observations.has_constraints() || trial.violation == 0;
  return is_complete && is_feasible ? trial.loss : std::numeric_limits<double>::infinity();
}

std::vector<double> expected_losses(const Observations& observations,
                                    std::span<const std::size_t> rows) {
  std::vector<double> losses;
  std::map<int, Projection> projections;
  double worst = -std::numeric_limits<double>::infinity(), best = -worst;
  for (const std::size_t row : rows) {
    losses.push_back(comparable_loss(observations, row));
    if (!std::isfinite(losses.back())) continue;
    worst = std::max(worst, losses.back());
    best = std::min(best, losses.back());
    for (const auto& [step, report] : observations.rows()[row].reports)
      projections[step].add(report, losses.back());
  }
  if (!std::isfinite(worst)) return {};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (std::isfinite(losses[i])) continue;
    losses[i] = worst;
    const Observations::Row& trial = observations.rows()[rows[i]];
    const bool is_feasible = !observations.has_constraints() || trial.violation == 0;
    if (!is_feasible || trial.reports.empty()) continue;
    const auto& [step, report] = trial.reports.back();
    if (const auto found = projections.find(step); found != projections.end())
      losses[i] = std::max(best, found->second.at(report).value_or(worst));
  }
  return losses;
}

}  // namespace lathe::study
