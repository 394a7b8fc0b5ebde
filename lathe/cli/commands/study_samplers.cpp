// What may stand behind --sampler and --pruner.
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/study/pruners/pruner.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::cli::study_samplers_command {
namespace {

using Json = nlohmann::ordered_json;

template <typename Kind>
Json to_json() {
  Json list = Json::array();
  for (const auto& [name, kind] : Registry<Kind>::instance().all()) {
    Json options = Json::object();
    for (const study::KindOption& option : kind.options) options[option.name] = option.help;
    list.push_back({{"name", name}, {"summary", kind.summary}, {"options", options}});
  }
  return list;
}

template <typename Kind>
void print_kinds(const char* title, const std::string& only) {
  bool is_first = true;
  for (const auto& [name, kind] : Registry<Kind>::instance().all()) {
    if (!only.empty() && only != name) continue;
    if (is_first) fmt::print("{}\n", title);
    is_first = false;
    fmt::print("  {:<20} {}\n", name, kind.summary);
    for (const study::KindOption& option : kind.options)
      fmt::print("    {:<22} {}\n", option.name, option.help);
  }
}

int run(const std::string& only, const Settings& settings) {
  if (settings.json) {
    print_json(
        {{"samplers", to_json<study::SamplerKind>()}, {"pruners", to_json<study::PrunerKind>()}});
    return 0;
  }
  if (!only.empty()) {
    std::vector<std::string> known;
    for (const auto& [name, kind] : Registry<study::SamplerKind>::instance().all())
      known.push_back(name);
    for (const auto& [name, kind] : Registry<study::PrunerKind>::instance().all())
      known.push_back(name);
    if (std::ranges::find(known, only) == known.end())
      throw unknown_name("sampler or pruner", only, known);
  }
  print_kinds<study::SamplerKind>("samplers, as --sampler NAME or NAME:KEY=VALUE,...", only);
  print_kinds<study::PrunerKind>("pruners, as --pruner NAME or NAME:KEY=VALUE,...", only);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto only = std::make_shared<std::string>();
  flags.add_option("name", *only, "one of them [all]");
  return [only](const Settings& settings) { return run(*only, settings); };
}

const Register registration{Command{
    .name = "study samplers",
    .summary = "list samplers and pruners with their options",
    .examples = "  lathe study samplers\n  lathe study samplers tpe",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::study_samplers_command
