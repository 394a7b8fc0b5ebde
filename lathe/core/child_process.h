#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/core/interrupt.h"

namespace lathe {

/// A program that runs beside us, in a process group of its own, so that Ctrl-C is ours to answer
/// and the whole of it can be ended. It dies with the thread that started it, even by kill -9.
class ChildProcess {
 public:
  /// Starts `words[0]`, found on PATH, with `input` as its standard input and the variables added
  /// to our environment. No shell is involved: words reach the program as they are. Nothing when
  /// there is no such program; fails when it cannot be started for another reason.
  static std::unique_ptr<ChildProcess> start(
      const std::vector<std::string>& words, std::string_view input = {},
      const std::vector<std::pair<std::string, std::string>>& environment = {});
  /// Ends what still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// What it wrote since the last call.
  struct Written {
    std::string output, errors;
  };
  /// Waits for the program to write something, or to end, at most so long.
  Written read(std::chrono::milliseconds timeout);
  /// True once it has ended and everything was read.
  bool is_finished() const { return is_finished_; }
  /// 128 + the signal's number when a signal ended it, as shells count.
  int exit_status() const { return exit_status_; }
  /// Asks the group to end, and makes it after two seconds.
  void terminate();

 private:
  ChildProcess() = default;
  bool reap(bool wait);

  pid_t process_ = -1;
  int output_ = -1, errors_ = -1;  // the ends we read, until they are closed
  bool has_ended_ = false, is_finished_ = false;
  int exit_status_ = 0;
};

/// What a finished program left behind.
struct ProcessResult {
  int exit_status = 0;  ///< as ChildProcess has it
  std::string output;
  std::string errors;
};

/// Starts a program and waits for it. Nothing when there is no such program. Asked to stop, it ends
/// the program and all that it started, and throws `Interrupted`.
[[nodiscard]] std::optional<ProcessResult> run_program(const std::vector<std::string>& words,
                                                       std::string_view input,
                                                       const ShouldStop& should_stop = {});

}  // namespace lathe
