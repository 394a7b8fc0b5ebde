#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lathe/core/interrupt.h"

namespace lathe::experiment {

/// How far a piece of work has come.
struct Progress {
  std::string activity;  ///< "training", "testing fixed:8,4"
  std::string unit;      ///< "steps", "texts"
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string note = {};  ///< such as the loss
};

/// What long work tells whoever waits for it, and asks; each may be empty.
struct Callbacks {
  std::function<void(const Progress&)> progress = {};
  /// Hears of what a user should know but need not act on, one line each.
  std::function<void(const std::string&)> notice = {};
  /// True ends the work: training with a checkpoint, anything else with `Interrupted`.
  ShouldStop should_stop = {};

  void tell(const Progress& now) const {
    if (progress) progress(now);
  }
  void warn(const std::string& line) const {
    if (notice) notice(line);
  }
  bool stops() const { return should_stop && should_stop(); }
  /// Tells how far the work has come; whether it is to go on.
  bool goes_on(const Progress& now) const {
    tell(now);
    return !stops();
  }
};

}  // namespace lathe::experiment
