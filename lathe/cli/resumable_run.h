#pragma once

#include <string_view>

#include "lathe/cli/execution.h"
#include "lathe/cli/progress_line.h"
#include "lathe/core/interrupt.h"

namespace lathe::cli {

/// Says how work that Ctrl-C ended goes on, and returns what the program exits with.
int tell_how_to_resume(std::string_view how);

/// Calls the library for work that keeps what is done, as `call(execution options, callbacks)`, and
/// prints what came of it by `print(result)`. Returns what the program exits with. `how` says what
/// to give to go on with work that was interrupted.
template <typename Call, typename Print>
int run_resumable(const Settings& settings, const Call& call, const Print& print,
                  std::string_view how = "the same command with --resume") {
  Execution execution(settings);
  ProgressLine line(settings);
  try {
    const auto result = call(execution.options(), line.callbacks());
    line.finish();
    print(result);
    return 0;
  } catch (const Interrupted&) {
    line.finish();
    return tell_how_to_resume(how);
  }
}

}  // namespace lathe::cli
