#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <optional>
#include <sstream>
#include <system_error>

#include "lathe/cli/command.h"
#include "lathe/cli/config_file.h"
#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/plugin.h"
#include "lathe/engine/backend.h"

namespace lathe::cli {
namespace {

constexpr int kUserError = 1;
constexpr int kInternalError = 70;

struct GlobalArguments {
  Settings settings;
  std::string isa;
  std::vector<std::string> plugins;
  std::string precision;
};

void add_global_options(Flags flags, GlobalArguments& global) {
  const char* const group = "Everywhere";
  flags.add_flag("--json", global.settings.json, "one JSON object on standard output").group(group);
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
  flags.add_option("--config", global.settings.config, "TOML file with options; flags win")
      .group(group);
  flags.add_flag("--quiet,-q", global.settings.quiet, "no progress").group(group);
}

// Every option of the command that was reached, for suggestions.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(subcommand->get_name());
  std::sort(names.begin(), names.end());
  return names;
}

CLI::App* find_subcommand(CLI::App& app, std::string_view name) {
  for (CLI::App* candidate : app.get_subcommands([](const CLI::App*) { return true; }))
    if (candidate->get_name() == name) return candidate;
  return nullptr;
}

const CLI::App& deepest(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.back());
}

std::string full_name(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "lathe";
  return full_name(*app.get_parent()) + " " + app.get_name();
}

// The word on the command line that nothing knows. A mistyped flag leaves its value behind as well:
// the flag is what to complain about.
std::optional<std::string> unknown_word(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  for (const std::string& extra : extras)
    if (extra.starts_with("-")) return extra.substr(0, extra.find('='));
  return extras.empty() ? std::nullopt : std::optional(extras.front());
}

UserError unknown_word_error(const CLI::App& command, const std::string& word) {
  const std::string place = full_name(command);
  const std::string nearest = nearest_name(word, option_names(command));
  const bool has_commands = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
  const char* kind = word.starts_with("-") ? "unknown flag"
                     : has_commands        ? "unknown command"
                                           : "unexpected argument";
  return UserError(fmt::format("{}: {} \"{}\"", place, kind, word),
                   nearest.empty() ? fmt::format("see {} --help", place)
                                   : fmt::format("did you mean \"{}\"?", nearest));
}

// What CLI11 found wrong, in our words: the place, the value and what was expected.
UserError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = deepest(app);
  const std::string place = full_name(command);
  const bool is_required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // What is missing may well be there, mistyped.
  if (is_required || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    if (const std::optional<std::string> word = unknown_word(app))
      return unknown_word_error(command, *word);
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (message.ends_with(".")) message.pop_back();
  const std::string option = message.substr(0, message.find(':'));
  if (message == "A subcommand is required")
    message = "a command is missing";
  else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    message = fmt::format("{} needs a value", option);
  else if (const std::size_t value = message.find(": Value "); value != std::string::npos)
    message.replace(value, 8, ": value ");
  else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr &&
           message.starts_with("Could not convert: "))
    message = fmt::format("{}: not a value of the kind expected", message.substr(19));
  return UserError(fmt::format("{}: {}", place, message), fmt::format("see {} --help", place));
}

// The words of the config file go right after the command's name, so that later flags win.
std::vector<std::string> with_config(std::vector<std::string> words, CLI::App& app) {
  std::string path;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--config" && i + 1 < words.size()) path = words[i + 1];
    if (words[i].starts_with("--config=")) path = words[i].substr(9);
  }
  if (path.empty()) return words;
  std::size_t end = 0;
  CLI::App* command = &app;
  std::string name;
  while (end < words.size()) {
    CLI::App* next = find_subcommand(*command, words[end]);
    if (next == nullptr) break;
    name = words[end];
    command = next;
    ++end;
  }
  const Command* record = Registry<Command>::instance().find(name);
  const std::vector<std::string> extra =
      read_config_file(path, name, option_names(*command),
                       record != nullptr ? record->lists : std::vector<std::string>{});
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(end), extra.begin(), extra.end());
  return words;
}

// Those of the environment, then those of the command line.
void load_plugins(const GlobalArguments& global) {
  if (const char* listed = std::getenv("LATHE_PLUGINS")) {
    std::istringstream paths(listed);
    for (std::string path; std::getline(paths, path, ':');)
      if (!path.empty()) load_plugin(path);
  }
  for (const std::string& path : global.plugins) load_plugin(path);
}

void finish_settings(GlobalArguments& global) {
  global.settings.isa = best_isa();
  if (!global.isa.empty()) {
    const std::optional<Isa> isa = parse_isa(global.isa);
    if (!isa) throw unknown_name("instruction set", global.isa, {"avx2", "avx512", "plain"});
    if (!is_supported(*isa)) fail("--isa {}: this processor does not have it", global.isa);
    global.settings.isa = *isa;
  }
  if (global.settings.device == "auto") global.settings.device = engine::fastest_device();
  const engine::Backend& backend = engine::find_backend(global.settings.device);
  if (!global.precision.empty())
    global.settings.precision = engine::parse_precision(global.precision);
  engine::check_precision(backend, global.settings.precision);
}

int report_error(const UserError& error) {
  fmt::print(stderr, "error: {}\n", error.message());
  if (!error.hint().empty()) fmt::print(stderr, "  hint: {}\n", error.hint());
  return kUserError;
}

// The library names an option that is wrong (`epochs 0: ...`); on the command line it has dashes.
// Commands of a group speak of things that share a name with an option (`study "s": ...`).
std::string with_dashes(const CLI::App& command, const std::string& text) {
  if (command.get_parent()->get_parent() != nullptr) return text;
  const std::string word = text.substr(0, text.find_first_of(": "));
  const bool is_option = command.get_option_no_throw("--" + word) != nullptr;
  return is_option && word.size() < text.size() ? "--" + text : text;
}
template <typename Action>
int with_dashes(const CLI::App& command, Action action) {
  try {
    return action();
  } catch (const UserError& error) {
    throw UserError(with_dashes(command, error.message()), with_dashes(command, error.hint()));
  }
}

// What the commands below a common word are about.
const char* group_summary(std::string_view group) {
  return group == "bench"       ? "time the labs' experiments: kernels, steps, memory"
         : group == "lora"      ? "look at a model's LoRA paths, fuse them into its weights"
         : group == "study"     ? "optimize anything: propose parameters, learn from results"
         : group == "tokenizer" ? "make vocabularies"
                                : "look at a graph, run passes on it";
}

int run_program(int argc, char** argv) {
  GlobalArguments global;
  global.settings.start = std::chrono::steady_clock::now();
  CLI::App app{"Lathe takes a trained network and makes it smaller and faster.", "lathe"};
  app.set_version_flag("--version", std::string("lathe ") + LATHE_VERSION);
  app.require_subcommand(0, 1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.get_formatter()->column_width(34);

  std::map<const CLI::App*, std::function<int(const Settings&)>> actions;
  const auto add = [&](const Command& command) {
    CLI::App* parent = &app;
    std::string name = command.name;
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
  };
  for (const auto& [name, command] : Registry<Command>::instance().all()) add(command);

  std::vector<std::string> words(argv + 1, argv + argc);
  global.settings.command_line = words;
  try {
    words = with_config(std::move(words), app);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", deepest(app).help());
    return 0;
  } catch (const CLI::CallForAllHelp&) {
    fmt::print("{}", app.help("", CLI::AppFormatMode::All));
    return 0;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  const auto action = actions.find(&deepest(app));
  if (action == actions.end()) {
    fmt::print("{}", app.help());
    return 0;
  }
  load_plugins(global);
  finish_settings(global);
  install_signal_handlers();
  const engine::WarmUp warm_up(engine::find_backend(global.settings.device));
  const int status = with_dashes(deepest(app), [&] { return action->second(global.settings); });
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  return status;
}

}  // namespace
}  // namespace lathe::cli

int main(int argc, char** argv) {
  try {
    return lathe::cli::run_program(argc, argv);
  } catch (const lathe::UserError& error) {
    return lathe::cli::report_error(error);
  } catch (const lathe::Interrupted&) {
    fmt::print(stderr, "interrupted\n");
    return 128 + lathe::cli::interrupting_signal();
  } catch (const std::system_error& error) {
    // Files are checked where they are opened; what is left is our own output.
    fmt::print(stderr, "error: standard output cannot be written: {}\n", error.code().message());
    return lathe::cli::kUserError;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return lathe::cli::kUserError;
  } catch (const std::exception& error) {
    fmt::print(stderr, "internal error: {}\n  please report this with the command you ran\n",
               error.what());
    return lathe::cli::kInternalError;
  }
}
