#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// What a finished program left behind.
struct ProcessResult {
  int exit_status = 0;  ///< 128 + the signal's number when a signal ended it, as shells count
  std::string output;
  std::string errors;
};

/// Runs `arguments[0]`, found on PATH, with `input` as its standard input, and waits for it.
/// No shell is involved: arguments reach the program as they are. Nullopt when there is no such
/// program.
[[nodiscard]] std::optional<ProcessResult> run_program(const std::vector<std::string>& arguments,
                                                       std::string_view input);

}  // namespace lathe
