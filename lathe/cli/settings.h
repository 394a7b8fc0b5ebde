#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"

namespace lathe::cli {

/// What every command understands.
struct Settings {
  bool json = false;
  bool reports_trial = false;  ///< to `lathe study run`: results on the way too
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all available
  std::string device = "cpu";
  engine::Precision precision = engine::Precision::Float32;
  bool plain_convolutions = false;
  Isa isa = Isa::Plain;
  bool quiet = false;
  std::string config = {};  ///< TOML file of options, for what else a command reads from it
  std::chrono::steady_clock::time_point start;  ///< of the process
  std::vector<std::string> command_line;

  double seconds() const;
  /// How the library is to execute graphs.
  engine::ExecutionOptions execution(ThreadPool& pool) const;
};

/// Asks the program to stop: set by the first SIGINT or SIGTERM, polled by long work. A second one
/// ends it at once.
bool is_interrupted();
/// The signal that interrupted, or 0.
int interrupting_signal();
void install_signal_handlers();

}  // namespace lathe::cli
