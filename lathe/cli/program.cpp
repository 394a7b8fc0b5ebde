#include "lathe/cli/program.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "lathe/cli/command.h"

namespace lathe::cli {
namespace {

void add_global_options(Flags flags, GlobalArguments& global) {
  const char* const group = kEverywhere;
  flags.add_flag("--json", global.settings.json, "one JSON object on standard output").group(group);
  flags
      .add_flag("--report-trial", global.settings.reports_trial,
                "what lathe study run reads: JSON, and results on the way where there are any")
      .group(group)
      .environment("LATHE_REPORT_TRIAL");
  flags.add_option("--seed", global.settings.seed, "seed of everything random [0]")
      .group(group)
      .range(0, std::numeric_limits<std::int64_t>::max());
  flags.add_option("--threads", global.settings.threads, "threads to use [all]")
      .group(group)
      .range(0, 4096);
  flags.add_option("--isa", global.isa, "instruction set: avx512, avx2, plain [the best here]")
      .group(group);
  flags
      .add_option("--device", global.settings.device,
                  "what executes graphs: cpu, cuda, auto or reference [cpu]")
      .group(group);
  flags
      .add_option("--plugin", global.plugins,
                  "library with ops or kernels of one's own, as often as wanted")
      .group(group)
      .repeatable()
      .one_word();
  flags
      .add_option("--precision", global.precision,
                  "what products see of their operands: float32, tf32 or bf16 [float32]")
      .group(group);
  flags
      .add_flag("--plain-convolutions", global.settings.plain_convolutions,
                "multiply windows as they are, without Winograd's products")
      .group(group);
  flags.add_option("--config", global.settings.config, "TOML file with options; flags win")
      .group(group);
  flags.add_flag("--quiet,-q", global.settings.quiet, "no progress").group(group);
}

// What the commands below a common word are about.
const char* group_summary(std::string_view group) {
  return group == "bench"       ? "time the labs' experiments: kernels, steps, memory"
         : group == "lora"      ? "look at a model's LoRA paths, fuse them into its weights"
         : group == "search"    ? "search for the network that does best"
         : group == "study"     ? "optimize anything: propose parameters, learn from results"
         : group == "tokenizer" ? "make vocabularies"
                                : "look at a graph, run passes on it";
}

// Help as people read it: what a value is and what it may be, in words.
class ProgramFormatter : public CLI::Formatter {
 public:
  // Not what a flag sets: "--cased{false}" is said as it is typed.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    const std::string word = value_word(*option), range = range_words(*option);
    if (!word.empty()) text += " " + word;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (!range.empty()) text += fmt::format(", {}", range);
    if (option->get_required()) text += ", required";
    if (!option->get_envname().empty()) text += fmt::format(" (or {})", option->get_envname());
    return text;
  }
};

}  // namespace

std::string value_word(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name().substr(0, option.get_type_name().find(':'));
  if (type == "INT" || type == "UINT") return "N";
  return type == "FLOAT" ? "X" : "TEXT";
}

std::string range_words(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  return colon == std::string::npos ? "" : type.substr(colon + 1);
}

CLI::App* find_subcommand(CLI::App& app, std::string_view name) {
  for (CLI::App* candidate : app.get_subcommands([](const CLI::App*) { return true; }))
    if (candidate->get_name() == name) return candidate;
  return nullptr;
}

Program::Program()
    : app{"Lathe takes a trained network and makes it smaller and faster.", "lathe"} {
  app.set_version_flag("--version", std::string("lathe ") + LATHE_VERSION);
  app.require_subcommand(0, 1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.formatter(std::make_shared<ProgramFormatter>());
  app.get_formatter()->column_width(38);
  for (const auto& [full_name, command] : Registry<Command>::instance().all()) {
    CLI::App* parent = &app;
    std::string name = full_name;
    // "graph print" hangs below "graph".
    if (const std::size_t blank = name.find(' '); blank != std::string::npos) {
      const std::string group = name.substr(0, blank);
      name = name.substr(blank + 1);
      parent = find_subcommand(app, group);
      if (parent == nullptr) {
        parent = app.add_subcommand(group, group_summary(group));
        parent->require_subcommand(1);
      }
    }
    CLI::App* sub = parent->add_subcommand(name, command.summary);
    sub->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    const Flags flags(*sub);
    actions[sub] = command.setup(flags);
    add_global_options(flags, global);
    if (!command.examples.empty()) sub->footer("Examples:\n" + command.examples);
  }
}

}  // namespace lathe::cli
