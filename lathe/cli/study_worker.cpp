#include "lathe/cli/study_worker.h"

#include <filesystem>

#include "lathe/cli/say.h"
#include "lathe/cli/trial_command.h"
#include "lathe/cli/trial_process.h"
#include "lathe/cli/trial_result.h"
#include "lathe/cli/trial_text.h"
#include "lathe/report/markup.h"
#include "lathe/study/objective_names.h"

namespace lathe::cli {
namespace {

using study::TrialState;

// How soon an interruption or the loss of a trial is noticed.
constexpr std::chrono::milliseconds kPoll{100};

// The command cannot be run at all, which is no fault of the trial.
struct CannotRun {
  UserError error;
};

std::string failure_text(const TrialProcess& process) {
  const int status = process.exit_status();
  const std::string how = status > 128 ? fmt::format("ended by signal {}", status - 128)
                                       : fmt::format("exit status {}", status);
  if (process.last_error().empty()) return how;
  return fmt::format("{}: {}", how,
                     report::shorten(report::printable_line(process.last_error()), 200));
}

std::vector<std::pair<std::string, std::string>> environment_of(const study::Trial& trial,
                                                                const StudyArguments& study) {
  auto environment = trial_environment(trial.record());
  environment.emplace_back("LATHE_STUDY", study.study);
  environment.emplace_back("LATHE_STORAGE", study.storage);
  environment.emplace_back("LATHE_OWNER", trial.owner());
  const auto attempt = trial.record().system_attributes.find("lathe:attempt");
  environment.emplace_back(
      "LATHE_ATTEMPT", attempt == trial.record().system_attributes.end() ? "1" : attempt->second);
  return environment;
}

// Our own commands are told to say what we read.
bool is_ours(const std::string& program) {
  return std::filesystem::path(program).filename() == "lathe";
}

// Runs the program for a trial, hands its reports on and reads its result.
study::Outcome evaluate(study::Trial& trial, const WorkerOptions& options,
                        const std::vector<std::string>& names, std::size_t num_objectives,
                        const std::vector<std::string>& objectives, const ShouldStop& should_stop) {
  std::optional<TrialProcess> process;
  try {
    auto environment = environment_of(trial, options.study);
    if (is_ours(options.command.front())) environment.emplace_back("LATHE_REPORT_TRIAL", "1");
    process.emplace(fill_in(options.command, trial.record(), names), environment);
  } catch (const UserError& error) {
    throw CannotRun{error};
  }
  std::string last;
  while (!process->is_finished()) {
    for (const std::string& line : process->read_lines(kPoll)) {
      const std::optional<ReportLine> report = parse_report(line, objectives);
      if (!report) {
        last = line;
        continue;
      }
      trial.report(report->step, report->values.front(),
                   {report->values.begin() + 1, report->values.end()});
      const study::Verdict verdict = trial.verdict();
      if (verdict == study::Verdict::Continue) continue;
      process->terminate();
      return {.state = verdict == study::Verdict::Prune ? TrialState::Pruned : TrialState::Waiting};
    }
    if (should_stop()) {
      process->terminate();
      throw Interrupted();
    }
  }
  if (process->exit_status() != 0)
    return {.state = TrialState::Fail, .reason = failure_text(*process)};
  TrialResult result = parse_result(last, num_objectives, objectives);
  for (auto& [key, value] : result.attributes) trial.set_user_attribute(key, value);
  if (!result.constraints.empty()) trial.set_constraints(result.constraints);
  return std::move(result.outcome);
}

}  // namespace

std::string WorkLog::last_failure() const {
  const std::scoped_lock lock(mutex_);
  return last_failure_;
}

bool WorkLog::has_only_failed() const {
  const std::scoped_lock lock(mutex_);
  return counts_.size() == 1 && counts_.contains(TrialState::Fail);
}

std::map<TrialState, int> WorkLog::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void WorkLog::ended(const study::WorkedTrial& worked) {
  const study::TrialRecord& trial = worked.trial;
  const std::scoped_lock lock(mutex_);
  if (worked.ending == study::Ending::HandedBack) {
    ++num_handed_back_;
    return;
  }
  std::string line = fmt::format("[{}{}] trial {} ", worked.num_finished,
                                 trials_ ? fmt::format("/{}", *trials_) : "", trial.number);
  if (worked.ending == study::Ending::Lost) {
    if (!is_quiet_) say("{}was taken by another worker\n", line);
    return;
  }
  ++counts_[trial.state];
  line += trial.state == TrialState::Waiting ? "paused" : state_text(trial.state);
  if (trial.state == TrialState::Fail) {
    ++failures_in_a_row_;
    const auto reason = trial.user_attributes.find("fail_reason");
    if (reason != trial.user_attributes.end()) {
      const nlohmann::ordered_json text = attribute_json(reason->second);
      last_failure_ = text.is_string() ? text.get<std::string>() : reason->second;
      line += ", " + last_failure_;
    }
  } else {
    failures_in_a_row_ = 0;
    if (!trial.values.empty()) line += " " + values_text(trial.values);
  }
  line += fmt::format(", {:.1f} s", worked.time.count());
  if (worked.best != nullptr && trial.values.size() == 1)
    line += worked.best->number == trial.number
                ? ", the best so far"
                : fmt::format(", best {} in trial {}", values_text(worked.best->values),
                              worked.best->number);
  if (!is_quiet_)
    say("{}: {}\n", line,
        report::shorten(report::printable_line(parameters_text(trial.parameters)), 200));
}

void work_on_study(const WorkerOptions& options, WorkLog& log) {
  study::Study study = open_study(
      options.study,
      {.space = options.space, .objectives = options.objectives, .lease = options.lease});
  if (study.space() == nullptr)
    throw UserError(
        fmt::format("study \"{}\": its parameters are not declared", options.study.study),
        "give them with --space FILE");
  std::vector<std::string> names;
  for (const study::SpaceParameter& parameter : *study.space()) names.push_back(parameter.name);
  const std::vector<std::string> objectives =
      options.objectives.empty() ? study::objective_names(study.record()) : options.objectives;
  study::StopRule rule = options.rule;
  rule.should_stop = is_interrupted;
  try {
    study::work(
        study,
        [&](study::Trial& trial, const ShouldStop& should_stop) {
          return evaluate(trial, options, names, study.record().directions.size(), objectives,
                          should_stop);
        },
        rule,
        [&](const study::WorkedTrial& worked) {
          log.ended(worked);
          if (options.max_failures > 0 && log.failures_in_a_row() >= options.max_failures)
            log.stop();
          if (log.is_stopped()) study.stop();
        });
  } catch (const CannotRun& failure) {
    throw failure.error;
  } catch (const Interrupted&) {
    // The command says so when all workers have ended.
  }
}

}  // namespace lathe::cli
