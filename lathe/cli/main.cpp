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
#include "lathe/cli/program.h"
#include "lathe/cli/say.h"
#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/plugin.h"
#include "lathe/core/thread_limit.h"
#include "lathe/engine/backend.h"

namespace lathe::cli {
namespace {

constexpr int kUserError = 1;
constexpr int kInternalError = 70;

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

// "--limit = x" of an option that takes numbers.
std::string conversion_text(const CLI::App& command, const std::string& text) {
  const std::size_t equals = text.find(" = ");
  if (equals == std::string::npos) return text + ": not a value of the kind expected";
  const CLI::Option* option = command.get_option_no_throw(text.substr(0, equals));
  const std::string kind = option == nullptr ? "" : value_word(*option);
  return fmt::format("{} {}: expected {}", text.substr(0, equals), text.substr(equals + 3),
                     kind == "N"   ? "a whole number"
                     : kind == "X" ? "a number"
                                   : "a value of another kind");
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
  else if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr)
    message.replace(option.size(), 2, " ");  // "--limit -1: expected ..."
  else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr &&
           message.starts_with("Could not convert: "))
    message = conversion_text(command, message.substr(19));
  return UserError(fmt::format("{}: {}", place, message), fmt::format("see {} --help", place));
}

// Options that are given once for each value: what has no commas of its own between values.
std::vector<std::string> repeated_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll &&
        option->get_expected_max() == CLI::detail::expected_max_vector_size &&
        option->get_delimiter() == '\0')
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

void add_command_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    add_command_names(*command, names);
  }
}

// The words of the config file go right after the command's name, so that later flags win.
std::vector<std::string> with_config(std::vector<std::string> words, CLI::App& app) {
  std::string path;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--config" && i + 1 < words.size()) path = words[i + 1];
    if (words[i].starts_with("--config=")) path = words[i].substr(9);
  }
  if (path.empty()) return words;
  ConfigTarget target;
  CLI::App* command = &app;
  while (target.command.size() < words.size()) {
    const std::string& word = words[target.command.size()];
    CLI::App* next = find_subcommand(*command, word);
    if (next == nullptr) break;
    target.command.push_back(word);
    command = next;
  }
  const auto end = words.begin() + std::ssize(target.command);
  if (!target.command.empty())
    if (const Command* record = Registry<Command>::instance().find(target.command.back()))
      target.lists = record->lists;
  target.flags = option_names(*command);
  target.repeated = repeated_names(*command);
  for (const CLI::Option* option : command->get_options())
    if (option->get_expected_max() == 0)
      for (const std::string& name : option->get_lnames()) target.switches.push_back("--" + name);
  for (auto word = end; word != words.end(); ++word)
    if (word->starts_with("--")) target.given.push_back(word->substr(0, word->find('=')));
  add_command_names(app, target.commands);
  const std::vector<std::string> extra = read_config_file(path, target);
  words.insert(end, extra.begin(), extra.end());
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

void finish_settings(GlobalArguments& global, const std::string& command) {
  if (!Registry<Command>::instance().at(command, "command").has_own_threads)
    check_threads(global.settings.threads);
  global.settings.isa = best_isa();
  if (!global.isa.empty()) {
    const std::optional<Isa> isa = parse_isa(global.isa);
    if (!isa) throw unknown_name("instruction set", global.isa, {"avx2", "avx512", "plain"});
    if (!is_supported(*isa)) fail("--isa {}: this processor does not have it", global.isa);
    global.settings.isa = *isa;
  }
  global.settings.json |= global.settings.reports_trial;
  if (global.settings.device == "auto") global.settings.device = engine::fastest_device();
  const engine::Backend& backend = engine::find_backend(global.settings.device);
  if (!global.precision.empty())
    global.settings.precision = engine::parse_precision(global.precision);
  engine::check_precision(backend, global.settings.precision);
  if (global.settings.plain_convolutions && global.settings.device != "cpu")
    fail("--plain-convolutions: {} has no others", global.settings.device);
}

int report_error(const UserError& error) {
  say("error: {}\n", error.message());
  if (!error.hint().empty()) say("  hint: {}\n", error.hint());
  return kUserError;
}

// The library names an option that is wrong (`epochs 0: ...`) without dashes; on the command line
// it has them. Known as options are the first word of a text, but for commands of a group, which
// speak of things that share a name with one (`study "s": ...`), a word with a hyphen, which can
// mean nothing else ("train.csv:1: text-column a: ..."), and a word in backquotes.
std::string with_dashes(const CLI::App& command, const std::string& text) {
  const auto is_option = [&](const std::string& word) {
    return command.get_option_no_throw("--" + word) != nullptr;
  };
  const bool is_of_group = command.get_parent()->get_parent() != nullptr;
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(":, \n", begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (word.size() > 2 && word.front() == '`' && word.back() == '`') {
      const std::string quoted = word.substr(1, word.size() - 2);
      if (is_option(quoted)) word = "--" + quoted;
    } else {
      const bool has_hyphen = word.find('-', 1) != word.npos && !word.starts_with('-');
      const bool is_first = begin == 0 && end < text.size() && !is_of_group;
      if ((has_hyphen || is_first) && is_option(word)) word = "--" + word;
    }
    result += word;
    if (end < text.size()) result += text[end];
    begin = end + 1;
  }
  return result;
}
template <typename Action>
int with_dashes(const CLI::App& command, Action action) {
  try {
    return action();
  } catch (const UserError& error) {
    throw UserError(with_dashes(command, error.message()), with_dashes(command, error.hint()));
  }
}

int run_program(int argc, char** argv) {
  Program program;
  GlobalArguments& global = program.global;
  CLI::App& app = program.app;
  global.settings.start = std::chrono::steady_clock::now();

  std::vector<std::string> words(argv + 1, argv + argc);
  global.settings.command_line = words;
  try {
    words = with_config(std::move(words), app);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());  // of the command that was reached, with all words before it
    return 0;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  } catch (const UserError& error) {
    if (&deepest(app) == &app) throw;
    throw UserError(with_dashes(deepest(app), error.message()), error.hint());
  }
  const auto action = program.actions.find(&deepest(app));
  if (action == program.actions.end()) {
    fmt::print("{}", app.help());
    return 0;
  }
  load_plugins(global);
  with_dashes(deepest(app), [&] {
    finish_settings(global, full_name(deepest(app)).substr(sizeof "lathe"));
    return 0;
  });
  install_signal_handlers();
  const engine::WarmUp warm_up(engine::find_backend(global.settings.device));
  const int status = with_dashes(deepest(app), [&] { return action->second(global.settings); });
  flush_output();
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
    lathe::cli::say("interrupted\n");
    return 128 + lathe::cli::interrupting_signal();
  } catch (const std::system_error& error) {
    // Files are checked where they are opened; what is left is our own output.
    lathe::cli::say("error: standard output cannot be written: {}\n", error.code().message());
    return lathe::cli::kUserError;
  } catch (const std::bad_alloc&) {
    lathe::cli::say("error: out of memory\n");
    return lathe::cli::kUserError;
  } catch (const std::exception& error) {
    lathe::cli::say("internal error: {}\n  please report this with the command you ran\n",
                    error.what());
    return lathe::cli::kInternalError;
  }
}
