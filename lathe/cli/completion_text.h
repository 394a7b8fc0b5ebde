#pragma once

#include <string>
#include <vector>

#include "lathe/cli/command_text.h"

namespace lathe::cli {

/// A script by which a shell (`bash`, `zsh`, `fish`) completes commands, their options and, where a
/// value is expected, files.
std::string completion_script(const std::string& shell, const std::vector<CommandText>& commands);

}  // namespace lathe::cli
