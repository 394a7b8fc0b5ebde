// The studies of a storage, or the trials of a study.
#include "lathe/cli/study_arguments.h"
#include "lathe/cli/study_text.h"
#include "lathe/cli/trial_text.h"
#include "lathe/report/table.h"

namespace lathe::cli::study_list_command {
namespace {

using Json = nlohmann::ordered_json;

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
    table.row({record.name, fmt::format("{}", fmt::join(objective_texts(record), ", ")),
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

std::function<int(const Settings&)> setup_list(Flags flags) {
  auto arguments = std::make_shared<ListArguments>();
  add_study_options(flags, arguments->study, false);
  flags.add_option("--state", arguments->state,
                   "only trials that are complete, pruned, fail, running or waiting");
  flags.add_option("--last", arguments->last, "only the last N trials");
  return [arguments](const Settings& settings) {
    return arguments->study.study.empty() ? list_studies(*arguments, settings)
                                          : list_trials(*arguments, settings);
  };
}

const Register list_command{Command{
    .name = "study list",
    .summary = "list the studies of a storage, or the trials of a study",
    .examples = "  lathe study list --storage sqlite:///runs.db\n"
                "  lathe study list --study s --state complete --last 20\n"
                "  lathe study list --study s --json",
    .setup = setup_list,
}};

}  // namespace
}  // namespace lathe::cli::study_list_command
