#include "lathe/study/storages/journal_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lathe/study/testing/storage_places.h"

namespace lathe::study {
namespace {

class JournalLines : public testing::Test {
 protected:
  // What a worker does that finds a lock unchanged for too long: takes it away and has its own.
  // (Both exist for a moment, so that they surely differ in their inodes.)
  ino_t replace_lock() {
    const std::string next = path_ + ".next";
    EXPECT_EQ(symlink(path_.c_str(), next.c_str()), 0);
    EXPECT_EQ(rename(next.c_str(), link_.c_str()), 0);
    return lock_on_disk();
  }
  // Which lock there is; 0: none.
  ino_t lock_on_disk() const {
    struct stat info {};
    return lstat(link_.c_str(), &info) == 0 ? info.st_ino : 0;
  }
  std::size_t num_files() const {
    const std::filesystem::directory_iterator files(std::filesystem::path(path_).parent_path());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

  StoragePlace place_ = *storage_place("journal");
  std::string path_ = place_.url.substr(std::string("journal:///").size());
  std::string link_ = path_ + ".lock";
  JournalFile file_{path_};
};

TEST_F(JournalLines, HasALockOnlyWhileItIsHeld) {
  {
    const JournalFile::Lock lock = file_.lock();
    EXPECT_NE(lock_on_disk(), 0);
    EXPECT_TRUE(lock.is_held());
  }
  EXPECT_EQ(lock_on_disk(), 0);
  EXPECT_EQ(num_files(), 1);
}

TEST_F(JournalLines, LeavesTheLockOfItsSuccessorWhenAHolderStalled) {
  ino_t successor = 0;
  {
    const JournalFile::Lock lock = file_.lock();
    successor = replace_lock();
    EXPECT_FALSE(lock.is_held());
  }
  EXPECT_EQ(lock_on_disk(), successor);
  EXPECT_EQ(num_files(), 2) << "and nothing beside it";
}

TEST_F(JournalLines, WritesNothingUnderALockThatWasLost) {
  const JournalFile::Lock lock = file_.lock();
  EXPECT_TRUE(file_.append(lock, {"one"}));
  replace_lock();
  EXPECT_FALSE(file_.append(lock, {"two"}));
  EXPECT_THAT(file_.read_new(), testing::ElementsAre("one"));
}

TEST_F(JournalLines, ReadsEachWholeLineOnce) {
  const JournalFile::Lock lock = file_.lock();
  EXPECT_TRUE(file_.append(lock, {"one", "two"}));
  EXPECT_THAT(file_.read_new(), testing::ElementsAre("one", "two"));
  EXPECT_TRUE(file_.append(lock, {"three"}));
  EXPECT_THAT(file_.read_new(), testing::ElementsAre("three"));
  EXPECT_EQ(file_.num_read(), 3);
}

// Of two that find the same lock stale, the second must not take the first one's new lock.
TEST_F(JournalLines, PutsBackALockThatIsNotTheOneItMeant) {
  ASSERT_EQ(symlink(path_.c_str(), link_.c_str()), 0);
  const LinkStamp stale = stamp_of(link_);
  const ino_t fresh = replace_lock();
  EXPECT_FALSE(remove_link(link_, stale));
  EXPECT_EQ(lock_on_disk(), fresh);
  EXPECT_TRUE(remove_link(link_, stamp_of(link_)));
  EXPECT_EQ(lock_on_disk(), 0);
  EXPECT_EQ(num_files(), 1);
}

}  // namespace
}  // namespace lathe::study
