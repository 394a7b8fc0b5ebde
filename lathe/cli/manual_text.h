#pragma once

#include <string>
#include <vector>

#include "lathe/cli/command_text.h"

namespace lathe::cli {

/// A page for man(1): of the program, which lists its commands.
std::string program_manual(const std::vector<CommandText>& commands);
/// The same of one command. `program_manual` says what every command takes.
std::string command_manual(const CommandText& command);

}  // namespace lathe::cli
