#pragma once

#include <memory>
#include <string>

#include "lathe/cli/settings.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/report/progress.h"

namespace lathe::cli {

/// Shows on standard error how far library calls have come, a bar for each activity, and what they
/// have to say, a line each. Ctrl-C ends them.
class ProgressLine {
 public:
  explicit ProgressLine(const Settings& settings) : is_quiet_(settings.quiet) {}
  /// For calls that end while this object is there.
  experiment::Callbacks callbacks();
  /// Ends the bar's line, so that what is printed next starts on its own.
  void finish();

 private:
  void show(const experiment::Progress& now);

  bool is_quiet_;
  std::string activity_;
  std::unique_ptr<report::Progress> bar_;
};

}  // namespace lathe::cli
