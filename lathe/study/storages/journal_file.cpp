#include "lathe/study/storages/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

// Optuna's own: how long a lock may stay as it is before its owner is taken for dead.
constexpr double kStaleSeconds = 30;

// A file descriptor that closes itself.
class File {
 public:
  File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags, 0666)) {
    if (descriptor_ < 0) fail("cannot be opened: {}", std::strerror(errno));
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  std::int64_t size() const {
    struct stat info {};
    if (fstat(descriptor_, &info) != 0) fail("cannot be read: {}", std::strerror(errno));
    return info.st_size;
  }
  // Up to `size` bytes from `offset`; fewer at the end of the file.
  std::string read(std::int64_t offset, std::int64_t size) const {
    std::string text(static_cast<std::size_t>(size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t count = pread(descriptor_, text.data() + done, text.size() - done,
                                  offset + static_cast<std::int64_t>(done));
      if (count < 0 && errno != EINTR) fail("cannot be read: {}", std::strerror(errno));
      if (count == 0) break;
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    text.resize(done);
    return text;
  }

 private:
  int descriptor_;
};

std::string unused_name(const std::string& link) {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}.rename", link, random(), random());
}

}  // namespace

LinkStamp stamp_of(const std::string& link) {
  struct stat info {};
  if (lstat(link.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// No system call removes a name only if it still is a certain file. So we look, rename to a name of
// our own, which only one process can do, and look again: what turns out to be another's goes back,
// unless there is a newer one by then. In the moment in between a third process may take the lock;
// whoever lost it that way finds out before it writes.
bool remove_link(const std::string& link, const LinkStamp& stamp) {
  if (stamp_of(link) != stamp) return false;
  const std::string own = unused_name(link);
  if (rename(link.c_str(), own.c_str()) != 0) return false;
  const bool was_meant = stamp_of(own) == stamp;
  // The link itself, not what it points to. It keeps its stamp.
  if (!was_meant) linkat(AT_FDCWD, own.c_str(), AT_FDCWD, link.c_str(), 0);
  unlink(own.c_str());
  return was_meant;
}

JournalFile::JournalFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) fail("expected a file, such as journal:///studies.log");
  const File file(path_, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC);
}

std::vector<std::string> JournalFile::read_new() {
  const File file(path_, O_RDONLY | O_CLOEXEC);
  const std::int64_t size = file.size();
  if (size < offset_) fail("was cut short while it was in use");
  const std::string text = file.read(offset_, size - offset_);
  std::vector<std::string> lines;
  std::size_t begin = 0;
  // A line without its end is still being written, or will never be.
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  offset_ += static_cast<std::int64_t>(begin);
  num_read_ += static_cast<std::int64_t>(lines.size());
  return lines;
}

// A writer that was killed may have left half a line. Whoever has the lock knows that nobody is
// going to complete it, and takes it away before it spoils the next one.
void JournalFile::require_whole_lines(int file) const {
  const File reader(path_, O_RDONLY | O_CLOEXEC);
  const std::int64_t size = reader.size();
  if (size == 0 || reader.read(size - 1, 1) == "\n") return;
  constexpr std::int64_t kBlock = 4096;
  std::int64_t keep = size;
  while (keep > 0) {
    const std::int64_t begin = std::max<std::int64_t>(0, keep - kBlock);
    const std::size_t end = reader.read(begin, keep - begin).rfind('\n');
    keep = begin;
    if (end == std::string::npos) continue;
    keep += static_cast<std::int64_t>(end) + 1;
    break;
  }
  if (ftruncate(file, keep) != 0) fail("cannot be written: {}", std::strerror(errno));
}

bool JournalFile::append(const Lock& lock, const std::vector<std::string>& lines) const {
  if (!lock.is_held()) return false;
  const File file(path_, O_RDWR | O_APPEND | O_CLOEXEC);
  require_whole_lines(file.get());
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) fail("cannot be written: {}", std::strerror(errno));
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (fsync(file.get()) != 0) fail("cannot be written: {}", std::strerror(errno));
  return true;
}

JournalFile::Lock::Lock(const std::string& path) : link_(path + ".lock") {
  double pause_s = 0.0005;
  double unchanged_s = 0;
  LinkStamp seen;
  while (symlink(path.c_str(), link_.c_str()) != 0) {
    if (errno != EEXIST) fail("cannot be locked: {}: {}", link_, std::strerror(errno));
    const LinkStamp found = stamp_of(link_);
    if (found != seen) unchanged_s = 0;
    seen = found;
    if (unchanged_s > kStaleSeconds) {
      remove_link(link_, seen);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
    unchanged_s += pause_s;
    pause_s = std::min(1.5 * pause_s, 0.02);
  }
  stamp_ = stamp_of(link_);
  if (stamp_ == LinkStamp{}) fail("cannot be locked: somebody removed {}", link_);
}

JournalFile::Lock::~Lock() {
  remove_link(link_, stamp_);
}

Time JournalFile::Lock::time() const {
  return Time(std::chrono::seconds(stamp_.seconds) +
              std::chrono::microseconds(stamp_.nanoseconds / 1000));
}

}  // namespace lathe::study
