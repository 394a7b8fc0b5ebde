// Trials one by one, for programs that run them on their own: ask, tell, report.
#include "lathe/cli/study_arguments.h"
#include "lathe/cli/trial_command.h"
#include "lathe/cli/trial_text.h"
#include "lathe/study/space_file.h"

namespace lathe::cli::study_trials_command {
namespace {

using Json = nlohmann::ordered_json;

struct AskArguments {
  StudyArguments study;
  std::string space;
  std::string lease;
  std::optional<int> trials;
  bool is_shell = false;
};

int ask(const AskArguments& arguments, const Settings& settings) {
  study::StudyOptions options{.max_trials = arguments.trials};
  if (!arguments.lease.empty()) options.lease = parse_duration("--lease", arguments.lease);
  if (!arguments.space.empty()) options.space = study::read_space_file(arguments.space);
  study::Study study = open_study(arguments.study, std::move(options));
  if (study.space() == nullptr)
    throw UserError(
        fmt::format("study \"{}\": its parameters are not declared", arguments.study.study),
        "give them with --space FILE");
  const std::optional<study::Trial> trial = study.ask();
  if (!trial) fail("study \"{}\": nothing is left to try", arguments.study.study);
  const bool has_owner = !arguments.lease.empty();
  if (settings.json) {
    Json json = {{"trial", trial->number()},
                 {"params", parameters_json(trial->record().parameters)}};
    if (has_owner) json["owner"] = trial->owner();
    print_json(json);
    return 0;
  }
  if (arguments.is_shell) {
    // Variables of an earlier trial must not outlive it.
    for (const study::SpaceParameter& parameter : *study.space())
      if (trial->record().find(parameter.name) == nullptr)
        fmt::print("unset {}\n", parameter_variable(parameter.name));
    if (!has_owner) fmt::print("unset LATHE_OWNER\n");
    for (const auto& [name, value] : trial_environment(trial->record()))
      fmt::print("export {}={}\n", name, shell_quoted(value));
    if (has_owner) fmt::print("export LATHE_OWNER={}\n", shell_quoted(trial->owner()));
    return 0;
  }
  fmt::print("trial {}\n", trial->number());
  if (has_owner) fmt::print("owner {}\n", trial->owner());
  for (const study::Parameter& parameter : trial->record().parameters)
    fmt::print("{} = {}\n", parameter.name, value_text(parameter));
  return 0;
}

std::function<int(const Settings&)> setup_ask(Flags flags) {
  auto arguments = std::make_shared<AskArguments>();
  add_study_options(flags, arguments->study);
  flags.add_option("--space", arguments->space,
                   "TOML file of the parameters, where the study has none yet");
  flags.add_option("--lease", arguments->lease,
                   "others may take the trial when nothing was heard of it for so long [never]");
  flags.add_option("--trials", arguments->trials, "refuse when the study has so many trials")
      .range(1, 1'000'000'000);
  flags.add_flag("--shell", arguments->is_shell,
                 "print commands for eval that export LATHE_TRIAL and LATHE_PARAM_NAME");
  return [arguments](const Settings& settings) { return ask(*arguments, settings); };
}

// The trial and who works on it; both stand in the environment of what `lathe study run` runs.
struct TrialArguments {
  StudyArguments study;
  int trial = -1;
  std::string owner;
};

void add_trial_options(Flags flags, TrialArguments& arguments) {
  add_study_options(flags, arguments.study);
  flags.add_option("--trial", arguments.trial, "its number").required().environment("LATHE_TRIAL");
  flags.add_option("--owner", arguments.owner, "who works on it, as lathe study ask --lease said")
      .environment("LATHE_OWNER");
}

struct TellArguments {
  TrialArguments trial;
  std::vector<double> values;
  std::string state = "complete";
  std::string reason;
};

study::TrialState parse_outcome(const std::string& text) {
  if (text == "complete") return study::TrialState::Complete;
  if (text == "pruned") return study::TrialState::Pruned;
  if (text == "fail") return study::TrialState::Fail;
  throw unknown_name("--state", text, {"complete", "fail", "pruned"});
}

int tell(const TellArguments& arguments, const Settings& settings) {
  const study::Outcome outcome{.state = parse_outcome(arguments.state),
                               .values = arguments.values,
                               .reason = arguments.reason};
  if (!arguments.reason.empty() && outcome.state != study::TrialState::Fail)
    fail("--reason {}: goes with --state fail", arguments.reason);
  study::Study study = open_study(arguments.trial.study);
  find_trial(study.record(), study.history(), arguments.trial.trial);
  study.tell(arguments.trial.trial, outcome, arguments.trial.owner);
  const study::TrialRecord trial =
      find_trial(study.record(), study.history(), arguments.trial.trial);
  if (settings.json) {
    print_json(trial_json(trial));
    return 0;
  }
  std::string line = fmt::format("trial {} {}", trial.number, state_text(trial.state));
  if (!trial.values.empty()) line += ", value " + values_text(trial.values);
  if (study.record().directions.size() == 1)
    if (const std::optional<study::TrialRecord> best = study.best())
      line += fmt::format("; best {} in trial {}", values_text(best->values), best->number);
  fmt::print("{}\n", line);
  return 0;
}

std::function<int(const Settings&)> setup_tell(Flags flags) {
  auto arguments = std::make_shared<TellArguments>();
  add_trial_options(flags, arguments->trial);
  flags.add_option("--value", arguments->values, "the result, once for each objective")
      .repeatable()
      .one_word();
  flags.add_option("--state", arguments->state, "complete, pruned or fail [complete]");
  flags.add_option("--reason", arguments->reason, "why it failed");
  return [arguments](const Settings& settings) { return tell(*arguments, settings); };
}

struct ReportArguments {
  TrialArguments trial;
  int step = 0;
  std::vector<double> values;
};

int report(const ReportArguments& arguments, const Settings& settings) {
  study::Study study = open_study(arguments.trial.study);
  find_trial(study.record(), study.history(), arguments.trial.trial);
  const study::Verdict verdict =
      study.report(arguments.trial.trial, arguments.step, arguments.values, arguments.trial.owner);
  const char* word = verdict == study::Verdict::Continue ? "continue"
                     : verdict == study::Verdict::Prune  ? "prune"
                                                         : "pause";
  if (settings.json)
    print_json({{"trial", arguments.trial.trial}, {"step", arguments.step}, {"verdict", word}});
  else
    fmt::print("{}\n", word);
  return 0;
}

std::function<int(const Settings&)> setup_report(Flags flags) {
  auto arguments = std::make_shared<ReportArguments>();
  add_trial_options(flags, arguments->trial);
  flags.add_option("--step", arguments->step, "how far it is, such as epochs")
      .required()
      .range(0, std::numeric_limits<int>::max());
  flags.add_option("--value", arguments->values, "the result so far, once for each objective")
      .required()
      .repeatable()
      .one_word();
  return [arguments](const Settings& settings) { return report(*arguments, settings); };
}

const Register ask_command{Command{
    .name = "study ask",
    .summary = "get the next trial's number and parameters",
    .examples = "  lathe study ask --study s --json\n"
                "  eval \"$(lathe study ask --study s --shell)\" && \\\n"
                "      lathe study tell --study s --value \"$(./objective.sh)\"\n"
                "  lathe study ask --study s --lease 60s --json",
    .setup = setup_ask,
}};
const Register tell_command{Command{
    .name = "study tell",
    .summary = "record how a trial ended",
    .examples = "  lathe study tell --study s --trial 3 --value 0.83\n"
                "  lathe study tell --study s --trial 3 --value 0.83 --value 12.5\n"
                "  lathe study tell --study s --trial 4 --state fail --reason 'out of memory'",
    .setup = setup_tell,
}};
const Register report_command{Command{
    .name = "study report",
    .summary = "record a result on the way; says continue, prune or pause",
    .examples = "  lathe study report --study s --trial 3 --step 1 --value 0.61\n"
                "  [ $(lathe study report --study s --trial 3 --step 2 --value 0.5) = prune ] && "
                "exit",
    .setup = setup_report,
}};

}  // namespace
}  // namespace lathe::cli::study_trials_command
