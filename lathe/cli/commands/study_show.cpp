// One study, or one of its trials, in full.
#include "lathe/cli/study_arguments.h"
#include "lathe/cli/study_text.h"
#include "lathe/cli/trial_text.h"
#include "lathe/report/table.h"
#include "lathe/study/objective_names.h"
#include "lathe/study/space.h"

namespace lathe::cli::study_show_command {
namespace {

using Json = nlohmann::ordered_json;

std::string counts_text(const study::History& history) {
  std::vector<std::string> parts;
  for (const auto& [state, count] : count_states(history))
    parts.push_back(fmt::format("{} {}", count, state_text(state)));
  return fmt::format("{}{}{}", history.trials().size(), parts.empty() ? "" : ": ",
                     fmt::join(parts, ", "));
}

struct ShowArguments {
  StudyArguments study;
  std::optional<int> trial;
};

void print_attributes(const study::Attributes& attributes) {
  for (const auto& [key, text] : attributes) fmt::print("  {:<22} {}\n", key, text);
}

int show_trial(const StoredStudy& study, int number, const Settings& settings) {
  const study::TrialRecord& trial = find_trial(study.record, study.history, number);
  if (settings.json) {
    Json json = trial_json(trial);
    json["reports"] = Json::object();
    for (const auto& [step, value] : trial.intermediate_values)
      json["reports"][fmt::format("{}", step)] = number_json(value);
    json["attributes"] = attributes_json(trial.user_attributes);
    if (trial.start) json["start"] = time_text(*trial.start);
    if (trial.complete) json["complete"] = time_text(*trial.complete);
    print_json(json);
    return 0;
  }
  fmt::print("trial       {} of {}\nstate       {}\n", trial.number, study.record.name,
             state_text(trial.state));
  if (!trial.values.empty()) fmt::print("value       {}\n", values_text(trial.values));
  if (const auto seconds = trial_seconds(trial)) fmt::print("seconds     {:.2f}\n", *seconds);
  if (!trial.parameters.empty()) fmt::print("parameters\n");
  for (const study::Parameter& parameter : trial.parameters)
    fmt::print("  {:<22} {}\n", parameter.name, value_text(parameter));
  if (!trial.intermediate_values.empty()) fmt::print("reports\n");
  for (const auto& [step, value] : trial.intermediate_values)
    fmt::print("  step {:<17} {}\n", step, number_text(value));
  if (!trial.user_attributes.empty()) fmt::print("attributes\n");
  print_attributes(trial.user_attributes);
  return 0;
}

std::string condition_text(const study::Space& space, const study::SpaceParameter& parameter) {
  if (parameter.parent.empty()) return "";
  std::vector<std::string> values;
  for (const study::SpaceParameter& parent : space)
    if (parent.name == parameter.parent)
      for (const double value : parameter.parent_values)
        values.push_back(value_text(study::to_external(*parent.distribution, value)));
  return fmt::format("{} = {}", parameter.parent, fmt::join(values, " or "));
}

int show(const ShowArguments& arguments, const Settings& settings) {
  const StoredStudy study = read_study(arguments.study);
  if (arguments.trial) return show_trial(study, *arguments.trial, settings);
  const std::vector<std::string> directions = direction_names(study.record.directions);
  if (settings.json) {
    Json json = {{"study", study.record.name},
                 {"storage", study.storage->description()},
                 {"directions", directions},
                 {"objectives", study::objective_labels(study.record)},
                 {"sampler", study.setting("sampler")},
                 {"pruner", study.setting("pruner")},
                 {"seed", study.setting("seed")},
                 {"trials", study.history.trials().size()}};
    json["states"] = Json::object();
    for (const auto& [state, count] : count_states(study.history))
      json["states"][state_text(state)] = count;
    json["best"] = study.best();
    if (study.space) json["space"] = attribute_json(study::to_json(*study.space));
    json["attributes"] = attributes_json(study.record.user_attributes);
    print_json(json);
    return 0;
  }
  fmt::print("study       {} in {}\nobjectives  {}\n", study.record.name,
             study.storage->description(), fmt::join(objective_texts(study.record), ", "));
  fmt::print("sampler     {}\npruner      {}\nseed        {}\n", study.setting("sampler"),
             study.setting("pruner"), study.setting("seed"));
  fmt::print("trials      {}\nbest        {}\n", counts_text(study.history), best_text(study));
  if (!study.record.user_attributes.empty()) fmt::print("attributes\n");
  print_attributes(study.record.user_attributes);
  if (!study.space) return 0;
  report::Table table({"parameter", "values", "only where"});
  for (const study::SpaceParameter& parameter : *study.space)
    table.row({parameter.name, study::describe(*parameter.distribution),
               condition_text(*study.space, parameter)});
  fmt::print("\n{}", table.to_text());
  return 0;
}

std::function<int(const Settings&)> setup_show(Flags flags) {
  auto arguments = std::make_shared<ShowArguments>();
  add_study_options(flags, arguments->study);
  flags.add_option("--trial", arguments->trial, "show this trial of it");
  return [arguments](const Settings& settings) { return show(*arguments, settings); };
}

const Register show_command{Command{
    .name = "study show",
    .summary = "show a study's settings, counts and parameters, or one trial",
    .examples = "  lathe study show --study s\n  lathe study show --study s --trial 12 --json",
    .setup = setup_show,
}};

}  // namespace
}  // namespace lathe::cli::study_show_command
