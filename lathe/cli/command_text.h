#pragma once

#include <string>
#include <vector>

namespace lathe::cli {

/// An option as help, manual pages and completion show it.
struct OptionText {
  std::vector<std::string> names = {};  ///< "--quiet", "-q"; without dashes if known by its place
  std::string value = {};               ///< N, X or TEXT; empty: takes none
  std::string range = {};               ///< "1 to 4096"; empty: any
  std::string help = {};
  std::string variable = {};  ///< of the environment, that stands in for it
  bool is_required = false;
  bool is_everywhere = false;  ///< every command has it
};

/// A command as help, manual pages and completion show it.
struct CommandText {
  std::string name = {};  ///< "graph print"
  std::string summary = {};
  std::string examples = {};
  std::vector<OptionText> options = {};
};

/// Every command with its options, by name: what the program itself parses.
std::vector<CommandText> describe_commands();

}  // namespace lathe::cli
