#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lathe/core/child_process.h"

namespace lathe::cli {

/// A program that runs for a trial, read line by line.
class TrialProcess {
 public:
  /// Starts the command with the variables added to our environment. Fails when it cannot.
  TrialProcess(const std::vector<std::string>& command,
               const std::vector<std::pair<std::string, std::string>>& environment);

  /// The lines it wrote to standard output since the last call, blank ones left out, waiting for
  /// some at most so long. A last line may lack its end.
  std::vector<std::string> read_lines(std::chrono::milliseconds timeout);
  /// True once it has ended and all its lines were read.
  bool is_finished() const { return child_->is_finished(); }
  int exit_status() const { return child_->exit_status(); }
  /// The last line that it wrote to standard error.
  const std::string& last_error() const { return last_error_; }
  void terminate() { child_->terminate(); }

 private:
  std::unique_ptr<ChildProcess> child_;
  std::string partial_output_, partial_errors_;  // lines without an end so far
  std::string last_error_;
};

}  // namespace lathe::cli
