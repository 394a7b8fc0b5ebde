// What a study found: the best trials, all trials as a file, pictures.
#include <cmath>

#include "lathe/cli/study_arguments.h"
#include "lathe/cli/trial_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/table.h"

namespace lathe::cli::study_results_command {
namespace {

using Json = nlohmann::ordered_json;

int best(const StudyArguments& arguments, const Settings& settings) {
  const StoredStudy study = read_study(arguments);
  const std::vector<int> numbers = study.best();
  if (numbers.empty())
    fail("study \"{}\": no trial is complete{}", study.record.name,
         study.history.trials().empty() ? "" : " and feasible");
  const auto trial_at = [&](int number) -> const study::TrialRecord& {
    return study.history.trials()[static_cast<std::size_t>(number)];
  };
  if (study.record.directions.size() == 1) {
    const study::TrialRecord& trial = trial_at(numbers[0]);
    if (settings.json) {
      print_json(trial_json(trial));
      return 0;
    }
    fmt::print("trial       {}\nvalue       {}\n", trial.number, values_text(trial.values));
    for (const study::Parameter& parameter : trial.parameters)
      fmt::print("  {:<22} {}\n", parameter.name, value_text(parameter));
    return 0;
  }
  Json front = Json::array();
  report::Table table({"trial", "values", "parameters"});
  for (const int number : numbers) {
    const study::TrialRecord& trial = trial_at(number);
    front.push_back(trial_json(trial));
    table.row(
        {fmt::format("{}", number), values_text(trial.values), parameters_text(trial.parameters)});
  }
  if (settings.json)
    print_json({{"study", study.record.name}, {"front", front}});
  else
    fmt::print("{}", table.to_text());
  return 0;
}

std::function<int(const Settings&)> setup_best(Flags flags) {
  auto arguments = std::make_shared<StudyArguments>();
  add_study_options(flags, *arguments);
  return [arguments](const Settings& settings) { return best(*arguments, settings); };
}

// A field as RFC 4180 has it: quoted where it must be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::vector<std::string> quoted;
  for (const std::string& field : fields) quoted.push_back(csv_field(field));
  return fmt::format("{}\n", fmt::join(quoted, ","));
}

// Attributes are JSON; texts are shown without their quotes.
std::string attribute_text(const study::Attributes& attributes, const std::string& key) {
  const auto found = attributes.find(key);
  if (found == attributes.end()) return "";
  const Json value = attribute_json(found->second);
  return value.is_string() ? value.get<std::string>() : found->second;
}

std::string to_csv(const StoredStudy& study) {
  const std::size_t num_objectives = study.record.directions.size();
  const std::vector<std::string> names =
      parameter_names(study.space ? &*study.space : nullptr, study.history);
  study::Attributes keys;
  for (const study::TrialRecord& trial : study.history.trials())
    for (const auto& [key, text] : trial.user_attributes) keys[key];
  std::vector<std::string> header = {"number", "state"};
  for (std::size_t i = 0; i < num_objectives; ++i)
    header.push_back(num_objectives == 1 ? "value" : fmt::format("values_{}", i));
  for (const char* name : {"start", "complete", "seconds"}) header.emplace_back(name);
  for (const std::string& name : names) header.push_back("params_" + name);
  for (const auto& [key, text] : keys) header.push_back("user_attrs_" + key);
  std::string csv = csv_line(header);
  for (const study::TrialRecord& trial : study.history.trials()) {
    std::vector<std::string> fields = {fmt::format("{}", trial.number),
                                       std::string(study::name(trial.state))};
    for (std::size_t i = 0; i < num_objectives; ++i)
      fields.push_back(i < trial.values.size() ? fmt::format("{}", trial.values[i]) : "");
    fields.push_back(trial.start ? time_text(*trial.start) : "");
    fields.push_back(trial.complete ? time_text(*trial.complete) : "");
    const std::optional<double> seconds = trial_seconds(trial);
    fields.push_back(seconds ? fmt::format("{:.6f}", *seconds) : "");
    for (const std::string& name : names) {
      const study::Parameter* parameter = trial.find(name);
      fields.push_back(parameter != nullptr ? value_text(*parameter) : "");
    }
    for (const auto& [key, text] : keys)
      fields.push_back(attribute_text(trial.user_attributes, key));
    csv += csv_line(fields);
  }
  return csv;
}

std::string to_json_document(const StoredStudy& study) {
  Json json;
  json["study"] = study.record.name;
  json["directions"] = Json::array();
  for (const study::Direction direction : study.record.directions)
    json["directions"].push_back(direction_name(direction));
  json["attributes"] = attributes_json(study.record.user_attributes);
  json["trials"] = Json::array();
  for (const study::TrialRecord& trial : study.history.trials()) {
    Json each = trial_json(trial);
    if (!trial.intermediate_values.empty())
      for (const auto& [step, value] : trial.intermediate_values)
        each["reports"][fmt::format("{}", step)] = number_json(value);
    if (!trial.user_attributes.empty()) each["attributes"] = attributes_json(trial.user_attributes);
    if (trial.start) each["start"] = time_text(*trial.start);
    if (trial.complete) each["complete"] = time_text(*trial.complete);
    json["trials"].push_back(std::move(each));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct ExportArguments {
  StudyArguments study;
  std::string format;
  std::string out;
};

int write_export(const ExportArguments& arguments, const Settings& settings) {
  std::string format = arguments.format;
  if (format.empty()) format = settings.json || arguments.out.ends_with(".json") ? "json" : "csv";
  if (format != "csv" && format != "json") throw unknown_name("--format", format, {"csv", "json"});
  const StoredStudy study = read_study(arguments.study);
  const std::string text = format == "csv" ? to_csv(study) : to_json_document(study);
  if (arguments.out.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  io::write_atomically(arguments.out, text);
  if (settings.json)
    print_json({{"out", arguments.out}, {"trials", study.history.trials().size()}});
  else
    fmt::print("wrote {} trials to {}\n", study.history.trials().size(), arguments.out);
  return 0;
}

std::function<int(const Settings&)> setup_export(Flags flags) {
  auto arguments = std::make_shared<ExportArguments>();
  add_study_options(flags, arguments->study);
  flags.add_option("--format", arguments->format, "csv or json [by the file's name, else csv]");
  flags.add_option("--out", arguments->out, "file to write [standard output]");
  return [arguments](const Settings& settings) { return write_export(*arguments, settings); };
}

const Register best_command{Command{
    .name = "study best",
    .summary = "show the best trial, or the Pareto front of several objectives",
    .examples = "  lathe study best --study s\n  lathe study best --study s --json",
    .setup = setup_best,
}};
const Register export_command{Command{
    .name = "study export",
    .summary = "write all trials as CSV or JSON",
    .examples = "  lathe study export --study s --out trials.csv\n"
                "  lathe study export --study s --format json | jq .trials[0]",
    .setup = setup_export,
}};

}  // namespace
}  // namespace lathe::cli::study_results_command
