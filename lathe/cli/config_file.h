#pragma once

#include <string>
#include <vector>

namespace lathe::cli {

/// The options a TOML file holds for a command, as command-line words (`--batch-size 8`). A table
/// of the command's name is used when there is one, else the keys outside any table. A key that is
/// none of the `flags` (`--batch-size`) fails with its line; lists of tables that the command reads
/// itself, `lists`, are left to it. A list of values is one word with commas, or of a flag among
/// `repeated`, whose values may hold commas, that flag once for each.
std::vector<std::string> read_config_file(const std::string& path, const std::string& command,
                                          const std::vector<std::string>& flags,
                                          const std::vector<std::string>& repeated = {},
                                          const std::vector<std::string>& lists = {});

}  // namespace lathe::cli
