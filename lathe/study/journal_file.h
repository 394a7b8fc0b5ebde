#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// A file of lines that processes, also on several machines, only ever append to.
///
/// The lock is Optuna's: a symbolic link `FILE.lock`, which every file system makes for one alone.
/// One that was left by a process that died is taken away after 30 seconds.
class JournalFile {
 public:
  /// Creates the file where there is none.
  explicit JournalFile(std::string path);

  /// The whole lines that were appended since the last call.
  std::vector<std::string> read_new();
  /// The number of the last line that was read.
  std::int64_t num_read() const { return num_read_; }

  /// While it lives, nobody else appends.
  class Lock {
   public:
    explicit Lock(const std::string& path);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    /// When the lock was made, by the clock of the file system: one for all machines.
    Time time() const { return time_; }

   private:
    std::string link_;
    Time time_;
  };
  Lock lock() const { return Lock(path_); }
  /// Appends lines, which are on the disk when this returns. Needs the lock.
  void append(const std::vector<std::string>& lines) const;

 private:
  void require_whole_lines(int file) const;

  std::string path_;
  std::int64_t offset_ = 0;  // of what is not yet read
  std::int64_t num_read_ = 0;
};

}  // namespace lathe::study
