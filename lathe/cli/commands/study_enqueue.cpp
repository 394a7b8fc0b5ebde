// What a user wants tried next.
#include <algorithm>

#include "lathe/cli/study_arguments.h"
#include "lathe/cli/trial_text.h"
#include "lathe/study/study.h"

namespace lathe::cli::study_enqueue_command {
namespace {

using Json = nlohmann::ordered_json;

struct EnqueueArguments {
  StudyArguments study;
  std::vector<std::string> sets;
  bool skip_if_exists = false;
};

// What the user wrote for a parameter: one of its choices as it is shown, or else JSON or a text.
study::Choice parse_value(const study::Distribution* distribution, const std::string& text) {
  if (distribution != nullptr)
    if (const auto* list = std::get_if<study::CategoricalDistribution>(distribution))
      for (const study::Choice& choice : list->choices)
        if (value_text(choice) == text) return choice;
  try {
    return study::parse_choice(text);
  } catch (const UserError&) {
    return text;
  }
}

int enqueue(const EnqueueArguments& arguments, const Settings& settings) {
  study::Study study = open_study(arguments.study);
  const std::vector<std::string> names = parameter_names(study.space(), study.history());
  std::vector<std::pair<std::string, study::Choice>> parameters;
  for (const std::string& set : arguments.sets) {
    const std::size_t equals = set.find('=');
    if (equals == 0 || equals == set.npos) fail("--set {}: expected NAME=VALUE", set);
    const std::string name = set.substr(0, equals);
    if (study.space() != nullptr && std::find(names.begin(), names.end(), name) == names.end())
      throw unknown_name("parameter", name, names).at(fmt::format("--set {}", set));
    study::DistributionPtr distribution;
    if (study.space() != nullptr)
      for (const study::SpaceParameter& each : *study.space())
        if (each.name == name) distribution = each.distribution;
    const study::Choice value = parse_value(distribution.get(), set.substr(equals + 1));
    if (distribution) study::to_internal(*distribution, value, name);
    parameters.emplace_back(name, value);
  }
  const bool is_new = study.enqueue(parameters, arguments.skip_if_exists);
  std::vector<std::string> texts;
  Json json = Json::object();
  for (const auto& [name, value] : parameters) {
    texts.push_back(fmt::format("{}={}", name, value_text(value)));
    json[name] = value_json(value);
  }
  if (settings.json)
    print_json({{"enqueued", is_new}, {"params", json}});
  else
    fmt::print("{}: {}\n", is_new ? "enqueued" : "already there", fmt::join(texts, " "));
  return 0;
}

std::function<int(const Settings&)> setup_enqueue(Flags flags) {
  auto arguments = std::make_shared<EnqueueArguments>();
  add_study_options(flags, arguments->study);
  flags.add_option("--set", arguments->sets, "NAME=VALUE; parameters left out are sampled")
      .required()
      .repeatable()
      .one_word();
  flags.add_flag("--skip-if-exists", arguments->skip_if_exists,
                 "not when a trial has just these already");
  return [arguments](const Settings& settings) { return enqueue(*arguments, settings); };
}

const Register enqueue_command{Command{
    .name = "study enqueue",
    .summary = "ask for a trial with parameters of your own next",
    .examples = "  lathe study enqueue --study s --set x=1 --set activation=gelu",
    .setup = setup_enqueue,
}};

}  // namespace
}  // namespace lathe::cli::study_enqueue_command
