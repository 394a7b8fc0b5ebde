#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace lathe::cli {

/// A program that runs for a trial, in a process group of its own, so that Ctrl-C is ours to answer
/// and the whole of it can be ended. It dies with us, even by kill -9.
class TrialProcess {
 public:
  /// Starts `command[0]`, found on PATH, with nothing on its standard input and the variables added
  /// to our environment. Fails when it cannot be started.
  TrialProcess(const std::vector<std::string>& command,
               const std::vector<std::pair<std::string, std::string>>& environment);
  /// Ends what still runs.
  ~TrialProcess();
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  /// The lines it wrote to standard output since the last call, waiting for some at most so long.
  std::vector<std::string> read_lines(std::chrono::milliseconds timeout);
  /// True once it has ended and all its lines were read.
  bool is_finished() const { return is_finished_; }
  /// 128 + the signal's number when a signal ended it, as shells count.
  int exit_status() const { return exit_status_; }
  /// The last line that it wrote to standard error.
  const std::string& last_error() const { return errors_.last; }
  /// Asks it to end, and makes it after two seconds.
  void terminate();

 private:
  struct Stream {
    int descriptor = -1;
    std::string partial = {};
    std::string last = {};  // the last line that is not blank
  };
  void read(Stream& stream, std::vector<std::string>* lines);
  void close(Stream& stream, std::vector<std::string>* lines);
  bool reap(bool wait);

  pid_t process_ = -1;
  Stream output_, errors_;
  bool has_ended_ = false, is_finished_ = false;
  int exit_status_ = 0;
};

}  // namespace lathe::cli
