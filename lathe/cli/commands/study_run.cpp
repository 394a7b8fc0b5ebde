// Evaluates any program: one process a trial, several at a time, on any number of machines.
#include <exception>
#include <thread>

#include "lathe/cli/say.h"
#include "lathe/cli/study_worker.h"
#include "lathe/cli/trial_text.h"
#include "lathe/core/interrupt.h"
#include "lathe/study/space_file.h"

namespace lathe::cli::study_run_command {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  StudyArguments study;
  std::vector<std::string> command;
  std::string space;
  int workers = 1;
  std::string lease = "30s";
  std::string time;
  int max_failures = 20;
  bool retries_failed = false;
  std::vector<std::string> objectives;
  study::StopRule rule{.counts_failed = false};
};

// Runs the workers and waits for them; the first error that one of them meets stops the others.
void run_workers(const WorkerOptions& options, int count, WorkLog& log) {
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      try {
        work_on_study(options, log);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!first) first = std::current_exception();
        log.stop();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

void print_summary(const StoredStudy& study, const WorkLog& log, const Settings& settings) {
  const std::vector<int> best = study.best();
  int total = 0;
  std::vector<std::string> parts;
  Json states = Json::object();
  for (const auto& [state, count] : log.counts()) {
    total += count;
    parts.push_back(fmt::format("{} {}", count, state_text(state)));
    states[state_text(state)] = count;
  }
  if (settings.json) {
    Json json = {{"study", study.record.name}, {"trials", total}, {"states", states}};
    json["best"] = Json::array();
    for (const int number : best)
      json["best"].push_back(trial_json(study.history.trials()[static_cast<std::size_t>(number)]));
    json["seconds"] = settings.seconds();
    print_json(json);
    return;
  }
  fmt::print("{} {}{}{}; the study has {}\n", total, total == 1 ? "trial" : "trials",
             parts.empty() ? "" : ": ", fmt::join(parts, ", "), study.history.trials().size());
  if (study.record.directions.size() > 1) {
    fmt::print("{} on the Pareto front; lathe study best shows them\n", best.size());
    return;
  }
  if (best.empty()) return;
  const study::TrialRecord& trial = study.history.trials()[static_cast<std::size_t>(best[0])];
  fmt::print("best {} in trial {}: {}\n", values_text(trial.values), trial.number,
             parameters_text(trial.parameters));
}

int run(const Arguments& arguments, const Settings& settings) {
  if (arguments.command.empty())
    throw UserError("lathe study run: a command is missing",
                    "put it behind --, such as: lathe study run --study s -- ./train.sh {rate}");
  WorkerOptions options{.study = arguments.study,
                        .command = arguments.command,
                        .lease = parse_duration("--lease", arguments.lease),
                        .rule = arguments.rule,
                        .objectives = arguments.objectives,
                        .max_failures = arguments.max_failures};
  if (!arguments.space.empty()) options.space = study::read_space_file(arguments.space);
  // Errors come before any thread.
  study::Study study_to_run =
      open_study(arguments.study, {.space = options.space, .objectives = arguments.objectives});
  if (arguments.retries_failed) {
    const int count = study_to_run.retry_failed();
    if (!settings.quiet)
      say("{} failed trial{} queued again\n", count, count == 1 ? " is" : "s are");
  }

  WorkLog log(settings.quiet, options.rule.trials);
  if (!arguments.time.empty()) options.rule.time = parse_duration("--time", arguments.time);
  run_workers(options, arguments.workers, log);

  if (is_interrupted()) {
    if (log.num_handed_back() > 0)
      say("{} handed back: the next run takes {} up\n",
          log.num_handed_back() == 1 ? "one trial was"
                                     : fmt::format("{} trials were", log.num_handed_back()),
          log.num_handed_back() == 1 ? "it" : "them");
    throw Interrupted();
  }
  const StoredStudy study = read_study(arguments.study);
  print_summary(study, log, settings);
  flush_output();  // before an error's line
  if (arguments.max_failures > 0 && log.failures_in_a_row() >= arguments.max_failures)
    throw UserError(fmt::format("stopped after {} failed trials in a row; the last: {}",
                                log.failures_in_a_row(), log.last_failure()),
                    "--max-failures 0 goes on regardless");
  if (log.has_only_failed())
    throw UserError(fmt::format("every trial of this run failed; the last: {}", log.last_failure()),
                    "--retry-failed tries them again");
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_study_options(flags, arguments->study);
  flags.add_option("--space", arguments->space,
                   "TOML file of the parameters, where the study has none yet");
  flags.add_option("--workers", arguments->workers, "trials at a time [1]").range(1, 1024);
  flags.add_option("--trials", arguments->rule.trials, "stop when the study has so many trials")
      .range(1, 1'000'000'000);
  flags.add_option("--time", arguments->time, "start no trial after so long, such as 2h");
  flags.add_option("--target", arguments->rule.target, "stop when the first objective is so good");
  flags
      .add_option("--patience", arguments->rule.patience,
                  "stop after so many trials without a better one")
      .range(1, 1'000'000'000);
  flags.add_option("--lease", arguments->lease,
                   "a worker not heard of for so long has lost its trial [30s]");
  flags
      .add_option("--objective", arguments->objectives,
                  "field of a JSON result that counts, such as accuracy, once for each objective "
                  "[the study's names]")
      .repeatable()
      .one_word();
  flags.add_flag("--count-failed", arguments->rule.counts_failed,
                 "failed trials count for --trials too");
  flags.add_flag("--retry-failed", arguments->retries_failed,
                 "first try every failed trial's parameters once more");
  flags
      .add_option("--max-failures", arguments->max_failures,
                  "give up after so many failed trials in a row, 0 for never [20]")
      .range(0, 1'000'000'000);
  flags.add_option("command", arguments->command, "behind --: the program and its arguments")
      .repeatable();
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register command{Command{
    .name = "study run",
    .summary = "evaluate a program for trial after trial",
    .examples =
        "  lathe study run --study s --trials 100 -- ./train.sh --rate {rate} --layers {layers}\n"
        "  lathe study run --study s --trials 20 --objective best_score -- \\\n"
        "      lathe train --model DIR --data D --validation 1000 --no-eval --lr {rate}\n"
        "  lathe study run --study s --workers 4 --lease 60s --time 2h -- python3 train.py\n"
        "The program finds its parameters where {name} stands and in LATHE_PARAM_NAME (all of "
        "them\n"
        "as JSON in LATHE_PARAMS). Its last line is the result: a number for each objective, or "
        "JSON\n"
        "such as {\"value\": 0.8, \"attributes\": {\"size\": 12}}. Lines like \"report 3 0.81\" on "
        "the\n"
        "way are for the pruner. Commands of lathe itself need no such line: --objective picks a "
        "field\n"
        "of their JSON. A status that is not 0 fails the trial. The same study may be run by many\n"
        "such commands at once.",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::study_run_command
