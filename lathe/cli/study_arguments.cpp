#include "lathe/cli/study_arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "lathe/cli/trial_text.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/space.h"

namespace lathe::cli {
namespace {

// The file that a storage's URL names; nothing when it names a server or memory.
std::optional<std::string> storage_file(const std::string& url) {
  const std::size_t scheme = url.find(':');
  if (scheme == url.npos) return url;
  const std::string name = url.substr(0, scheme);
  if (name != "sqlite" && name != "journal") return std::nullopt;
  return url.substr(scheme + 1).starts_with("///") ? std::optional(url.substr(scheme + 4))
                                                   : std::nullopt;
}

}  // namespace

std::shared_ptr<study::Storage> open_storage(const StudyArguments& arguments, bool may_be_new) {
  if (arguments.storage.starts_with("memory:"))
    throw UserError(
        fmt::format("--storage {} would be gone when this command ends", arguments.storage),
        "use sqlite:///FILE");
  const std::optional<std::string> file = storage_file(arguments.storage);
  std::error_code ignored;
  if (!may_be_new && file && !std::filesystem::exists(*file, ignored))
    throw UserError(fmt::format("--storage {}: there is no file {}", arguments.storage, *file),
                    "lathe study create makes it");
  return study::open_storage(arguments.storage);
}

study::StudyId require_study(study::Storage& storage, const std::string& name) {
  if (const std::optional<study::StudyId> id = storage.find_study(name)) return *id;
  std::vector<std::string> known;
  for (const study::StudyRecord& record : storage.studies()) known.push_back(record.name);
  std::sort(known.begin(), known.end());
  const std::string nearest = nearest_name(name, known);
  throw UserError(fmt::format("{}: there is no study \"{}\"", storage.description(), name),
                  !nearest.empty() ? fmt::format("did you mean \"{}\"?", nearest)
                  : known.empty()  ? "it has no studies yet; lathe study create makes one"
                                   : "lathe study list shows those that are there");
}

study::Study open_study(const StudyArguments& arguments, study::StudyOptions options) {
  std::shared_ptr<study::Storage> storage = open_storage(arguments);
  require_study(*storage, arguments.study);
  return study::Study::open(std::move(storage), arguments.study, std::move(options));
}

StoredStudy read_study(std::shared_ptr<study::Storage> storage, study::StudyId id) {
  study::StudyRecord record = storage->study(id);
  study::History history(record.directions);
  history.change([&](auto& trials) { storage->refresh(id, trials); });
  std::optional<study::Space> space;
  if (const auto kept = record.system_attributes.find("lathe:space");
      kept != record.system_attributes.end())
    space = with_place(fmt::format("study \"{}\"", record.name),
                       [&] { return study::parse_space(kept->second); });
  return {std::move(storage), std::move(record), std::move(history), std::move(space)};
}

StoredStudy read_study(const StudyArguments& arguments) {
  std::shared_ptr<study::Storage> storage = open_storage(arguments);
  const study::StudyId id = require_study(*storage, arguments.study);
  return read_study(std::move(storage), id);
}

std::string StoredStudy::setting(std::string_view name) const {
  const auto kept = record.system_attributes.find(fmt::format("lathe:{}", name));
  if (kept == record.system_attributes.end()) return "-";
  const nlohmann::ordered_json value = attribute_json(kept->second);
  return value.is_string() ? value.get<std::string>() : kept->second;
}

std::vector<int> StoredStudy::best() const {
  if (record.directions.size() == 1) {
    study::Progress progress;
    progress.update(history);
    return progress.best() ? std::vector<int>{*progress.best()} : std::vector<int>{};
  }
  std::vector<int> numbers;
  std::vector<study::Losses> points;
  std::vector<double> violations;
  for (const study::TrialRecord& trial : history.trials()) {
    if (trial.state != study::TrialState::Complete) continue;
    numbers.push_back(trial.number);
    points.push_back(study::to_losses(trial.values, record.directions));
    violations.push_back(study::violation(trial));
  }
  std::vector<int> front;
  for (const int index : study::non_dominated(points, violations))
    front.push_back(numbers[static_cast<std::size_t>(index)]);
  return front;
}

std::chrono::milliseconds parse_duration(std::string_view flag, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const double factor = unit == "ms"                  ? 1e-3
                        : unit.empty() || unit == "s" ? 1
                        : unit == "m"                 ? 60
                        : unit == "h"                 ? 3600
                                                      : 0;
  const double seconds = number * factor;
  if (error != std::errc() || factor == 0 || !(seconds >= 1e-3) || seconds > 1e9)
    fail("{} {}: expected a time such as 30s, 500ms, 10m or 2h", flag, text);
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

study::Direction parse_direction(std::string_view text) {
  if (text == "minimize") return study::Direction::Minimize;
  if (text == "maximize") return study::Direction::Maximize;
  throw unknown_name("--direction", text, {"maximize", "minimize"});
}

std::string_view direction_name(study::Direction direction) {
  return direction == study::Direction::Minimize ? "minimize" : "maximize";
}

const study::TrialRecord& find_trial(const study::StudyRecord& study, const study::History& history,
                                     int number) {
  const auto trials = history.trials();
  if (number < 0 || static_cast<std::size_t>(number) >= trials.size())
    fail("study \"{}\": there is no trial {}; {}", study.name, number,
         trials.empty() ? "it has none" : fmt::format("the last is {}", trials.size() - 1));
  return trials[static_cast<std::size_t>(number)];
}

std::vector<std::string> parameter_names(const study::Space* space, const study::History& history) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> known;
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back(name);
  };
  if (space != nullptr)
    for (const study::SpaceParameter& parameter : *space) add(parameter.name);
  for (const study::TrialRecord& trial : history.trials())
    for (const study::Parameter& parameter : trial.parameters) add(parameter.name);
  return names;
}

}  // namespace lathe::cli
