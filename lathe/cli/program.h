#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/cli/settings.h"

namespace lathe::cli {

/// The heading of the options that every command has.
inline constexpr const char* kEverywhere = "Everywhere";

/// What every command takes, as it was written.
struct GlobalArguments {
  Settings settings = {};
  std::string isa = {};
  std::vector<std::string> plugins = {};
  std::string precision = {};
};

/// The command line as a whole: every registered command with its options.
struct Program {
  Program();
  Program(const Program&) = delete;  // options point into it
  Program& operator=(const Program&) = delete;

  GlobalArguments global;
  CLI::App app;
  /// What runs, by the command that was reached.
  std::map<const CLI::App*, std::function<int(const Settings&)>> actions;
};

/// The command of that name directly below `app`, or nullptr.
CLI::App* find_subcommand(CLI::App& app, std::string_view name);

/// What stands for the option's value in help: N for whole numbers, X for others, TEXT, or nothing
/// for a flag.
std::string value_word(const CLI::Option& option);
/// The values it takes, in words, where they are limited: "1 to 4096".
std::string range_words(const CLI::Option& option);

}  // namespace lathe::cli
