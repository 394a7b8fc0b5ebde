#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): not ours to name
class App;
class Option;
}  // namespace CLI

namespace lathe::cli {

/// An option that was declared, for what else there is to say of it. A handle: copies are the same
/// option.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag& required();
  /// Refuses values outside `least` to `most`, bounds included; help and errors say the range in
  /// words.
  Flag& range(std::int64_t least, std::int64_t most);
  Flag& at_least(std::int64_t least) { return range(least, std::int64_t{1} << 40); }
  /// The same for real numbers; `words` says the range: "more than 0".
  Flag& range(double least, double most, const std::string& words);
  /// Keeps what is given each time; without this, the last one wins.
  Flag& repeatable();
  /// Takes one word each time it is given, although what it fills is a list.
  Flag& one_word();
  /// Splits its words into values.
  Flag& separated_by(char delimiter);
  /// Reads its value from an environment variable where it is not given.
  Flag& environment(const std::string& variable);
  /// Cannot be given together with `other`.
  Flag& excludes(Flag other);
  /// Stands in the help under this heading.
  Flag& group(const std::string& heading);

 private:
  CLI::Option* option_;
};

/// What a command reads from the command line. A handle: copies declare options of the same
/// command.
///
/// Each function names the option ("--length", "--quiet,-q", "file" for one known by its place),
/// what to fill and the line of help. What is filled must outlive the parsing. The library that
/// parses consists of templates that cost seconds in each file that sees them: flags.cpp holds them
/// for all commands, one overload for each type that some option has.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(&app) {}

  Flag add_option(const std::string& names, std::string& value, const std::string& help);
  Flag add_option(const std::string& names, std::filesystem::path& value, const std::string& help);
  Flag add_option(const std::string& names, int& value, const std::string& help);
  Flag add_option(const std::string& names, std::int64_t& value, const std::string& help);
  Flag add_option(const std::string& names, std::uint64_t& value, const std::string& help);
  Flag add_option(const std::string& names, double& value, const std::string& help);
  Flag add_option(const std::string& names, std::optional<std::string>& value,
                  const std::string& help);
  Flag add_option(const std::string& names, std::optional<int>& value, const std::string& help);
  Flag add_option(const std::string& names, std::optional<double>& value, const std::string& help);
  Flag add_option(const std::string& names, std::vector<std::string>& value,
                  const std::string& help);
  Flag add_option(const std::string& names, std::vector<double>& value, const std::string& help);
  /// Hands the text to `read`, which fails where it is none of what it knows.
  Flag add_option(const std::string& names, std::function<void(const std::string&)> read,
                  const std::string& help);
  /// Takes no value: true where given, or false where it is named "!--no-name" or "--name{false}".
  Flag add_flag(const std::string& names, bool& value, const std::string& help);

  /// The names of the options that were given, without their dashes: on the command line or in a
  /// configuration file, and not left to their defaults.
  std::set<std::string> given() const;

 private:
  CLI::App* app_;
};

}  // namespace lathe::cli
