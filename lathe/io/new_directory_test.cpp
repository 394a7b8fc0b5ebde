#include "lathe/io/new_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/atomic_file.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NewDirectory, AppearsWhenItIsCommitted) {
  const ScratchDirectory scratch;
  NewDirectory directory(scratch / "new/");
  write_atomically(directory.path() / "file", "text");
  EXPECT_FALSE(std::filesystem::exists(scratch / "new"));
  directory.commit();
  EXPECT_EQ(scratch.read("new/file"), "text");
  EXPECT_THAT(scratch.names(), ElementsAre("new"));
}

TEST(NewDirectory, LeavesNothingBehindWithoutCommit) {
  const ScratchDirectory scratch;
  { write_atomically(NewDirectory(scratch / "new").path() / "file", "text"); }
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST(NewDirectory, RefusesATargetThatExists) {
  const ScratchDirectory scratch;
  scratch.write("there", "");
  const std::string target = (scratch / "there").string();
  EXPECT_EQ(refusal(target, [&] { NewDirectory directory(target); }), "exists already");
  EXPECT_THAT(scratch.names(), ElementsAre("there"));
}

TEST(NewDirectory, ReplacesAsAWhole) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch / "there");
  scratch.write("there/old", "");
  NewDirectory directory(scratch / "there", NewDirectory::Existing::Replace);
  write_atomically(directory.path() / "new", "");
  EXPECT_TRUE(std::filesystem::exists(scratch / "there/old"));
  directory.commit();
  EXPECT_FALSE(std::filesystem::exists(scratch / "there/old"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "there/new"));
  EXPECT_THAT(scratch.names(), ElementsAre("there"));
}

TEST(RemoveDirectory, TakesAwayAllOfIt) {
  const ScratchDirectory scratch;
  std::filesystem::create_directories(scratch / "there/deep");
  scratch.write("there/deep/file", "");
  remove_directory(scratch / "there/");
  EXPECT_THAT(scratch.names(), IsEmpty());
}

}  // namespace
}  // namespace lathe::io
