#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// What tells one symbolic link from the next of the same name; the default is that of none.
struct LinkStamp {
  std::uint64_t inode = 0;
  std::int64_t seconds = -1;
  std::int64_t nanoseconds = 0;
  bool operator==(const LinkStamp&) const = default;
};
LinkStamp stamp_of(const std::string& link);

/// Removes the link if it is still the one of that stamp, and says whether it was.
bool remove_link(const std::string& link, const LinkStamp& stamp);

/// A file of lines that processes, also on several machines, only ever append to.
///
/// The lock is Optuna's: a symbolic link `FILE.lock`, which every file system makes for one alone.
/// One that was left by a process that died is taken away after 30 seconds. A process that only
/// slept so long finds its lock lost: it writes nothing, and leaves the lock of its successor.
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
    Time time() const;
    /// False once somebody took us for dead and the lock away.
    bool is_held() const { return stamp_of(link_) == stamp_; }

   private:
    std::string link_;
    LinkStamp stamp_;
  };
  Lock lock() const { return Lock(path_); }
  /// Appends lines, which are on the disk when this returns. False, with nothing written, when the
  /// lock is no longer held: what was decided under it may no longer be right.
  [[nodiscard]] bool append(const Lock& lock, const std::vector<std::string>& lines) const;

 private:
  void require_whole_lines(int file) const;

  std::string path_;
  std::int64_t offset_ = 0;  // of what is not yet read
  std::int64_t num_read_ = 0;
};

}  // namespace lathe::study
