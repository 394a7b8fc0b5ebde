#include "lathe/cli/study_worker.h"

#include <thread>

#include "lathe/cli/trial_command.h"
#include "lathe/cli/trial_process.h"
#include "lathe/cli/trial_result.h"
#include "lathe/cli/trial_text.h"
#include "lathe/report/markup.h"

namespace lathe::cli {
namespace {

using Clock = std::chrono::steady_clock;
using study::TrialState;

// How soon an interruption or a stop is noticed.
constexpr std::chrono::milliseconds kPoll{100};

enum class Ending {
  Told,        // the result is in
  Lost,        // somebody else has the trial by now
  HandedBack,  // it waits to be taken again
};

std::string failure_text(const TrialProcess& process) {
  const int status = process.exit_status();
  const std::string how = status > 128 ? fmt::format("ended by signal {}", status - 128)
                                       : fmt::format("exit status {}", status);
  if (process.last_error().empty()) return how;
  return fmt::format("{}: {}", how,
                     report::shorten(report::printable_line(process.last_error()), 200));
}

class Worker {
 public:
  Worker(const WorkerOptions& options, WorkLog& log)
      : options_(options),
        log_(log),
        study_(open_study(
            options.study,
            {.space = options.space, .lease = options.lease, .max_trials = options.rule.trials})) {
    if (study_.space() == nullptr)
      throw UserError(
          fmt::format("study \"{}\": its parameters are not declared", options.study.study),
          "give them with --space FILE");
    for (const study::SpaceParameter& parameter : *study_.space()) names_.push_back(parameter.name);
  }

  void work() {
    while (!should_stop()) {
      std::optional<study::Trial> trial = study_.ask();
      if (trial) {
        idle_since_.reset();
        evaluate(*trial);
      } else if (!wait_for_others()) {
        return;
      }
    }
  }

 private:
  bool should_stop() {
    if (log_.is_stopped() || is_interrupted()) return true;
    progress_.update(study_.history());
    if (!progress_.is_over(options_.rule, study_.history())) return false;
    // Trials may still wait in the queue; the rule is about results.
    log_.stop();
    return true;
  }

  // Nothing is left to start. A trial of another process may still come back, if its owner is dead:
  // that shows within a lease.
  bool wait_for_others() {
    bool has_others = false;
    for (const study::TrialRecord& trial : study_.history().trials())
      has_others |= trial.state == TrialState::Running && !log_.is_ours(trial.number);
    if (!idle_since_) idle_since_ = Clock::now();
    if (!has_others || Clock::now() - *idle_since_ > 2 * options_.lease) return false;
    std::this_thread::sleep_for(std::min(kPoll * 2, options_.lease / 2));
    return true;
  }

  void evaluate(study::Trial& trial) {
    log_.began(trial.number());
    const Clock::time_point start = Clock::now();
    Ending ending = Ending::HandedBack;
    try {
      ending = run(trial);
    } catch (...) {
      // The command cannot be run, or the storage is gone: others may do better with the trial.
      try {
        study_.release(trial);
      } catch (const UserError&) {
        // It becomes free when its lease runs out.
      }
      throw;
    }
    if (ending == Ending::HandedBack) {
      log_.handed_back();
      return;
    }
    const study::History& history = study_.history();
    progress_.update(history);
    const study::TrialRecord* best =
        progress_.best() ? &history.trials()[static_cast<std::size_t>(*progress_.best())] : nullptr;
    log_.ended(history.trials()[static_cast<std::size_t>(trial.number())], best,
               history.finished().size(),
               std::chrono::duration<double>(Clock::now() - start).count(), ending == Ending::Told);
    if (options_.max_failures > 0 && log_.failures_in_a_row() >= options_.max_failures) log_.stop();
  }

  Ending tell(study::Trial& trial, study::Outcome outcome) {
    return study_.tell(trial, std::move(outcome)) ? Ending::Told : Ending::Lost;
  }

  Ending run(study::Trial& trial) {
    auto environment = trial_environment(trial.record());
    environment.emplace_back("LATHE_STUDY", options_.study.study);
    environment.emplace_back("LATHE_STORAGE", options_.study.storage);
    environment.emplace_back("LATHE_OWNER", trial.owner());
    const auto attempt = trial.record().system_attributes.find("lathe:attempt");
    environment.emplace_back(
        "LATHE_ATTEMPT", attempt == trial.record().system_attributes.end() ? "1" : attempt->second);
    TrialProcess process(fill_in(options_.command, trial.record(), names_), environment);
    std::string last;
    Clock::time_point heard = Clock::now();
    while (!process.is_finished()) {
      for (const std::string& line : process.read_lines(kPoll)) {
        const std::optional<ReportLine> report = parse_report(line);
        if (!report) {
          last = line;
          continue;
        }
        trial.report(report->step, report->values.front(),
                     {report->values.begin() + 1, report->values.end()});
        const study::Verdict verdict = trial.verdict();
        heard = Clock::now();
        if (verdict == study::Verdict::Continue) continue;
        process.terminate();
        return tell(trial, {.state = verdict == study::Verdict::Prune ? TrialState::Pruned
                                                                      : TrialState::Waiting});
      }
      if (is_interrupted()) {
        process.terminate();
        study_.release(trial);
        return Ending::HandedBack;
      }
      if (options_.lease.count() > 0 && Clock::now() - heard > options_.lease / 3) {
        heard = Clock::now();
        if (!trial.flush()) {
          process.terminate();
          return Ending::Lost;
        }
      }
    }
    if (process.exit_status() != 0)
      return tell(trial, {.state = TrialState::Fail, .reason = failure_text(process)});
    try {
      TrialResult result = parse_result(last, study_.record().directions.size());
      for (auto& [key, value] : result.attributes) trial.set_user_attribute(key, value);
      if (!result.constraints.empty()) trial.set_constraints(result.constraints);
      return tell(trial, std::move(result.outcome));
    } catch (const UserError& error) {
      return tell(trial, {.state = TrialState::Fail, .reason = error.message()});
    }
  }

  const WorkerOptions& options_;
  WorkLog& log_;
  study::Study study_;
  study::Progress progress_;
  std::vector<std::string> names_;
  std::optional<Clock::time_point> idle_since_;
};

}  // namespace

void WorkLog::began(int number) {
  const std::scoped_lock lock(mutex_);
  running_.insert(number);
}

bool WorkLog::is_ours(int number) const {
  const std::scoped_lock lock(mutex_);
  return running_.contains(number);
}

std::string WorkLog::last_failure() const {
  const std::scoped_lock lock(mutex_);
  return last_failure_;
}

std::map<TrialState, int> WorkLog::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void WorkLog::ended(const study::TrialRecord& trial, const study::TrialRecord* best,
                    std::size_t num_finished, double seconds, bool was_taken) {
  const std::scoped_lock lock(mutex_);
  running_.erase(trial.number);
  std::string line = fmt::format("[{}{}] trial {} ", num_finished,
                                 trials_ ? fmt::format("/{}", *trials_) : "", trial.number);
  if (!was_taken) {
    ++num_lost_;
    if (!is_quiet_) fmt::print(stderr, "{}was taken by another worker\n", line);
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
  line += fmt::format(", {:.1f} s", seconds);
  if (best != nullptr && trial.values.size() == 1)
    line += best->number == trial.number
                ? ", the best so far"
                : fmt::format(", best {} in trial {}", values_text(best->values), best->number);
  if (!is_quiet_)
    fmt::print(stderr, "{}: {}\n", line,
               report::shorten(report::printable_line(parameters_text(trial.parameters)), 200));
}

void work_on_study(const WorkerOptions& options, WorkLog& log) {
  Worker(options, log).work();
}

}  // namespace lathe::cli
