#include "lathe/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

using Names = std::vector<std::string>;

// Writes beyond `bytes` fail while this lives, as they do on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : previous_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int);
};

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const ScratchDirectory scratch;
  scratch.write("a", "old");
  AtomicFile file(scratch / "a");
  file.write("ne");
  file.write("w");
  EXPECT_EQ(scratch.read("a"), "old");
  file.commit();
  EXPECT_EQ(scratch.read("a"), "new");
  EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(AtomicFile, LeavesNothingBehindWithoutACommit) {
  const ScratchDirectory scratch;
  AtomicFile(scratch / "a").write("lost");
  EXPECT_EQ(scratch.names(), Names{});
}

TEST(AtomicFile, ReplacesALinkAndNotWhatItPointsTo) {
  const ScratchDirectory scratch;
  scratch.write("cached", "old");
  std::filesystem::create_symlink("cached", scratch / "a");
  write_atomically(scratch / "a", "new");
  EXPECT_EQ(scratch.read("a"), "new");
  EXPECT_EQ(scratch.read("cached"), "old");
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const ScratchDirectory scratch;
  scratch.write("a", "old");
  const FileSizeLimit limit(1000);
  EXPECT_EQ(refusal((scratch / "a").string(),
                    [&] { write_atomically(scratch / "a", std::string(5000, 'x')); }),
            "cannot write: file too large");
  EXPECT_EQ(scratch.read("a"), "old");
  EXPECT_EQ(scratch.names(), Names{"a"});
}

TEST(AtomicFile, RefusesTargetsThatARenameWouldDestroyOrCannotReach) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  const auto message = [](const std::filesystem::path& path) {
    return refusal(path.string(), [&] { write_atomically(path, "x"); });
  };
  EXPECT_EQ(message("/dev/null"), "cannot write: exists and is not a regular file");
  EXPECT_EQ(message(scratch / "pipe"), "cannot write: exists and is not a regular file");
  EXPECT_EQ(message(scratch.path()), "cannot write: exists and is not a regular file");
  EXPECT_EQ(message(scratch / "none/a"), "cannot create: no such file or directory");
  EXPECT_EQ(message(scratch / "none/"), "is not a file name");
  EXPECT_EQ(message(scratch / std::string(300, 'x')), "cannot create: file name too long");
}

}  // namespace
}  // namespace lathe::io
