// Studies as a whole: create, list, show, delete.
#include <CLI/App.hpp>
#include <map>

#include "lathe/cli/study_arguments.h"
#include "lathe/cli/trial_text.h"
#include "lathe/report/table.h"
#include "lathe/study/space.h"
#include "lathe/study/space_file.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CreateArguments {
  StudyArguments study;
  std::vector<std::string> directions;
  std::string space;
  std::optional<std::string> sampler, pruner;
  bool skip_if_exists = false;
};

std::vector<std::string> direction_names(const std::vector<study::Direction>& directions) {
  std::vector<std::string> names;
  for (const study::Direction direction : directions) names.emplace_back(direction_name(direction));
  return names;
}

int create(const CreateArguments& arguments, const Settings& settings) {
  std::vector<study::Direction> directions;
  for (const std::string& text : arguments.directions) directions.push_back(parse_direction(text));
  if (directions.empty()) directions.push_back(study::Direction::Minimize);
  study::StudyOptions options{
      .sampler = arguments.sampler, .pruner = arguments.pruner, .seed = settings.seed};
  if (!arguments.space.empty()) options.space = study::read_space_file(arguments.space);
  // Wrong options are found before a study is made with them.
  study::make_sampler(arguments.sampler.value_or("auto"), settings.seed,
                      options.space ? &*options.space : nullptr);
  study::make_pruner(arguments.pruner.value_or("none"));

  const std::shared_ptr<study::Storage> storage = open_storage(arguments.study, true);
  const std::optional<study::StudyId> there = storage->find_study(arguments.study.study);
  if (there && !arguments.skip_if_exists)
    throw UserError(fmt::format("{}: there is already a study \"{}\"", storage->description(),
                                arguments.study.study),
                    "--skip-if-exists leaves it as it is");
  if (there) {
    // Left as it is, but it must be the study that was asked for.
    if (arguments.directions.empty()) directions = storage->study(*there).directions;
    options = {.space = std::move(options.space)};
  }
  study::Study::create(storage, arguments.study.study, directions, std::move(options));
  if (settings.json)
    print_json({{"study", arguments.study.study},
                {"storage", storage->description()},
                {"created", !there.has_value()},
                {"directions", direction_names(directions)}});
  else if (there)
    fmt::print("study {} is already in {}\n", arguments.study.study, storage->description());
  else
    fmt::print("created study {} in {}\n", arguments.study.study, storage->description());
  return 0;
}

std::function<int(const Settings&)> setup_create(CLI::App& app) {
  auto arguments = std::make_shared<CreateArguments>();
  add_study_options(app, arguments->study);
  app.add_option("--direction", arguments->directions,
                 "minimize or maximize, once for each objective [minimize]")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_option("--space", arguments->space, "TOML file of the parameters");
  app.add_option("--sampler", arguments->sampler,
                 "what proposes parameters, such as tpe, random, cmaes or nsga2 [auto]");
  app.add_option("--pruner", arguments->pruner,
                 "what stops hopeless trials early, such as median or hyperband [none]");
  app.add_flag("--skip-if-exists", arguments->skip_if_exists, "an existing study is no error");
  return [arguments](const Settings& settings) { return create(*arguments, settings); };
}

int remove(const StudyArguments& arguments, const Settings& settings) {
  const StoredStudy study = read_study(arguments);
  study.storage->delete_study(study.record.id);
  if (settings.json)
    print_json({{"deleted", study.record.name}, {"trials", study.history.trials().size()}});
  else
    fmt::print("deleted study {} with {} trials\n", study.record.name,
               study.history.trials().size());
  return 0;
}

std::function<int(const Settings&)> setup_delete(CLI::App& app) {
  auto arguments = std::make_shared<StudyArguments>();
  add_study_options(app, *arguments);
  return [arguments](const Settings& settings) { return remove(*arguments, settings); };
}

std::map<study::TrialState, int> count_states(const study::History& history) {
  std::map<study::TrialState, int> counts;
  for (const study::TrialRecord& trial : history.trials()) ++counts[trial.state];
  return counts;
}

std::string counts_text(const study::History& history) {
  std::vector<std::string> parts;
  for (const auto& [state, count] : count_states(history))
    parts.push_back(fmt::format("{} {}", count, state_text(state)));
  return fmt::format("{}{}{}", history.trials().size(), parts.empty() ? "" : ": ",
                     fmt::join(parts, ", "));
}

// The best value, or how many trials the front has.
std::string best_text(const StoredStudy& study) {
  const std::vector<int> best = study.best();
  if (best.empty()) return "-";
  if (study.record.directions.size() > 1) return fmt::format("{} on the front", best.size());
  return values_text(study.history.trials()[static_cast<std::size_t>(best[0])].values);
}

struct ListArguments {
  StudyArguments study;
  std::string state;
  std::size_t last = 0;
};

int list_studies(const ListArguments& arguments, const Settings& settings) {
  const std::shared_ptr<study::Storage> storage = open_storage(arguments.study);
  Json all = Json::array();
  report::Table table({"study", "objectives", "trials", "complete", "best"});
  for (const study::StudyRecord& record : storage->studies()) {
    const StoredStudy study = read_study(storage, record.id);
    const int complete = count_states(study.history)[study::TrialState::Complete];
    const std::vector<std::string> directions = direction_names(record.directions);
    all.push_back({{"study", record.name},
                   {"directions", directions},
                   {"trials", study.history.trials().size()},
                   {"complete", complete},
                   {"best", study.best()}});
    table.row({record.name, fmt::format("{}", fmt::join(directions, ", ")),
               fmt::format("{}", study.history.trials().size()), fmt::format("{}", complete),
               best_text(study)});
  }
  if (settings.json)
    print_json({{"storage", storage->description()}, {"studies", all}});
  else if (all.empty())
    fmt::print("{} has no studies\n", storage->description());
  else
    fmt::print("{}", table.to_text());
  return 0;
}

int list_trials(const ListArguments& arguments, const Settings& settings) {
  const StoredStudy study = read_study(arguments.study);
  std::optional<study::TrialState> state;
  if (!arguments.state.empty()) {
    std::vector<std::string> known;
    for (const auto each :
         {study::TrialState::Complete, study::TrialState::Fail, study::TrialState::Pruned,
          study::TrialState::Running, study::TrialState::Waiting}) {
      known.push_back(state_text(each));
      if (known.back() == arguments.state) state = each;
    }
    if (!state) throw unknown_name("--state", arguments.state, known);
  }
  std::vector<const study::TrialRecord*> trials;
  for (const study::TrialRecord& trial : study.history.trials())
    if (!state || trial.state == *state) trials.push_back(&trial);
  if (arguments.last > 0 && trials.size() > arguments.last)
    trials.erase(trials.begin(), trials.end() - static_cast<std::ptrdiff_t>(arguments.last));
  Json all = Json::array();
  report::Table table({"trial", "state", "value", "seconds", "parameters"});
  for (const study::TrialRecord* trial : trials) {
    if (settings.json) {
      all.push_back(trial_json(*trial));
      continue;
    }
    const std::optional<double> seconds = trial_seconds(*trial);
    table.row({fmt::format("{}", trial->number), state_text(trial->state),
               values_text(trial->values), seconds ? fmt::format("{:.2f}", *seconds) : "-",
               parameters_text(trial->parameters)});
  }
  if (settings.json)
    print_json({{"study", study.record.name}, {"trials", all}});
  else if (trials.empty())
    fmt::print("study {} has no {}trials\n", study.record.name, state ? arguments.state + " " : "");
  else
    fmt::print("{}", table.to_text());
  return 0;
}

std::function<int(const Settings&)> setup_list(CLI::App& app) {
  auto arguments = std::make_shared<ListArguments>();
  add_study_options(app, arguments->study, false);
  app.add_option("--state", arguments->state,
                 "only trials that are complete, pruned, fail, running or waiting");
  app.add_option("--last", arguments->last, "only the last N trials");
  return [arguments](const Settings& settings) {
    return arguments->study.study.empty() ? list_studies(*arguments, settings)
                                          : list_trials(*arguments, settings);
  };
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
             study.storage->description(), fmt::join(directions, ", "));
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

std::function<int(const Settings&)> setup_show(CLI::App& app) {
  auto arguments = std::make_shared<ShowArguments>();
  add_study_options(app, arguments->study);
  app.add_option("--trial", arguments->trial, "show this trial of it");
  return [arguments](const Settings& settings) { return show(*arguments, settings); };
}

const Register create_command{Command{
    .name = "study create",
    .summary = "make a study: its objectives, parameters and sampler",
    .examples = "  lathe study create --study s --direction maximize --space space.toml\n"
                "  lathe study create --study s --space space.toml --sampler tpe:multivariate=true "
                "--seed 7\n"
                "  lathe study create --study s --direction maximize --direction minimize \\\n"
                "      --space space.toml --storage postgresql://me@host/studies",
    .setup = setup_create,
}};
const Register delete_command{Command{
    .name = "study delete",
    .summary = "delete a study and its trials",
    .examples = "  lathe study delete --study s --storage sqlite:///runs.db",
    .setup = setup_delete,
}};
const Register list_command{Command{
    .name = "study list",
    .summary = "list the studies of a storage, or the trials of a study",
    .examples = "  lathe study list --storage sqlite:///runs.db\n"
                "  lathe study list --study s --state complete --last 20\n"
                "  lathe study list --study s --json",
    .setup = setup_list,
}};
const Register show_command{Command{
    .name = "study show",
    .summary = "show a study's settings, counts and parameters, or one trial",
    .examples = "  lathe study show --study s\n  lathe study show --study s --trial 12 --json",
    .setup = setup_show,
}};

}  // namespace
}  // namespace lathe::cli
