#pragma once

#include <string>
#include <vector>

namespace lathe::cli {

/// What a command takes of a TOML file, and what was said of it already.
struct ConfigTarget {
  std::vector<std::string> command = {};   ///< its words: search, architecture
  std::vector<std::string> flags = {};     ///< `--batch-size`
  std::vector<std::string> switches = {};  ///< those that take no value
  std::vector<std::string> repeated = {};  ///< those that are given once for each value
  std::vector<std::string> lists = {};     ///< lists of tables that the command reads itself
  std::vector<std::string> given = {};     ///< flags on the command line
  std::vector<std::string> commands = {};  ///< every command, whose tables may stand in the file
};

/// The options a TOML file holds for a command, as command-line words (`--batch-size 8`): the keys
/// outside any table, and those of a table of the command's name, which win. Fails, with its line,
/// on a key that is none of the command's flags and on a table that is no command's. A list of
/// values is one word with commas, or of a repeated flag, whose values may hold commas, that flag
/// once for each; a repeated flag that is given is left out. `false` of a switch that has an
/// opposite (`--no-dropout`) is that.
std::vector<std::string> read_config_file(const std::string& path, const ConfigTarget& target);

}  // namespace lathe::cli
