#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/study.h"

namespace lathe::study {

void Study::require_values(const Outcome& outcome) const {
  if (outcome.values.size() != record_.directions.size())
    fail("study \"{}\": {} values told, expected {}, one per objective", record_.name,
         outcome.values.size(), record_.directions.size());
}

// What an outcome means for the trial's state, values and attributes.
TrialChange Study::settle(const TrialRecord& record, Outcome outcome) const {
  TrialChange change{.state = outcome.state};
  switch (outcome.state) {
    case TrialState::Running:
      fail("study \"{}\": trial {} cannot end as {}", record_.name, record.number,
           name(outcome.state));
    case TrialState::Waiting:
      change.system_attributes["lathe:paused"] = "true";
      break;
    case TrialState::Fail:
      break;
    case TrialState::Pruned:
      // As Optuna does, a pruned trial has the value of its last report.
      if (outcome.values.empty() && !record.intermediate_values.empty())
        outcome.values = report_at(record, record.intermediate_values.rbegin()->first);
      if (outcome.values.size() == record_.directions.size() &&
          std::ranges::all_of(outcome.values, [](double value) { return std::isfinite(value); }))
        change.values = std::move(outcome.values);
      break;
    case TrialState::Complete: {
      require_values(outcome);
      for (std::size_t i = 0; i < outcome.values.size(); ++i) {
        if (std::isfinite(outcome.values[i])) continue;
        // No sampler can learn from it and no storage of Optuna's holds NaN.
        change.state = TrialState::Fail;
        change.user_attributes["diverged"] = "true";
        if (outcome.reason.empty())
          outcome.reason = fmt::format("objective {} is {}", i, outcome.values[i]);
        break;
      }
      if (change.state == TrialState::Fail) break;
      // A result at chance level is still a result: samplers learn to stay away from it.
      const double first = outcome.values.front();
      if (options_.chance_level &&
          !is_better(record_.directions.front(), first, *options_.chance_level))
        change.user_attributes["collapsed"] = "true";
      change.values = std::move(outcome.values);
      break;
    }
  }
  if (change.state == TrialState::Fail && !outcome.reason.empty())
    change.user_attributes["fail_reason"] = to_json_text(outcome.reason);
  return change;
}

void Study::learn(int number) {
  const TrialRecord& record = history_.trials()[static_cast<std::size_t>(number)];
  if (is_finished(record.state)) sampler_->told(history_, record);
}

bool Study::tell(Trial& trial, Outcome outcome) {
  TrialChange change = settle(trial.record_, std::move(outcome));
  change.parameters = std::move(trial.pending_.parameters);
  change.intermediate_values = std::move(trial.pending_.intermediate_values);
  change.user_attributes.merge(trial.pending_.user_attributes);
  change.system_attributes.merge(trial.pending_.system_attributes);
  trial.pending_ = {};
  if (!storage_->update(trial.record_.id, trial.owner_, change)) return false;
  apply(change, trial.record_, now());
  remember(trial.number(), change);
  learn(trial.number());
  return true;
}

const TrialRecord& Study::running_trial(int number) {
  refresh();
  if (number < 0 || static_cast<std::size_t>(number) >= history_.trials().size())
    fail("study \"{}\": there is no trial {}, the last is {}", record_.name, number,
         static_cast<int>(history_.trials().size()) - 1);
  const TrialRecord& record = history_.trials()[static_cast<std::size_t>(number)];
  if (record.state != TrialState::Running)
    fail("study \"{}\": trial {} is {}, expected RUNNING", record_.name, number,
         name(record.state));
  return record;
}

// Says why the storage did not take what was written to a trial that was running.
void Study::refuse(int number) {
  running_trial(number);
  fail("study \"{}\": trial {} belongs to another worker", record_.name, number);
}

void Study::tell(int number, Outcome outcome, const Owner& owner) {
  const TrialRecord& record = running_trial(number);
  const TrialChange change = settle(record, std::move(outcome));
  if (!storage_->update(record.id, owner, change)) refuse(number);
  remember(number, change);
  learn(number);
}

Verdict Study::report(int number, int step, const std::vector<double>& values, const Owner& owner) {
  if (values.size() != record_.directions.size())
    fail("study \"{}\": trial {} reports {} values, expected {}", record_.name, number,
         values.size(), record_.directions.size());
  Trial trial(*this, running_trial(number), owner);
  trial.report(step, values.front(), {values.begin() + 1, values.end()});
  if (!trial.flush()) refuse(number);
  return trial.verdict();
}

void Study::release(Trial& trial) {
  trial.pending_.state = TrialState::Waiting;
  // Not ours any more: then there is nothing to give back.
  const bool was_ours = storage_->update(trial.record_.id, trial.owner_, trial.pending_);
  if (was_ours) remember(trial.number(), trial.pending_);
  trial.pending_ = {};
}

}  // namespace lathe::study
