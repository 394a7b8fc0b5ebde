#include "lathe/io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

TEST(MappedFile, HasTheBytesOfTheFile) {
  const ScratchDirectory scratch;
  const auto file = MappedFile::open(scratch.write("a", "three"));
  EXPECT_EQ(file->size(), 5u);
  EXPECT_EQ(file->text(), "three");
}

TEST(MappedFile, OfAnEmptyFileIsEmpty) {
  const ScratchDirectory scratch;
  EXPECT_EQ(MappedFile::open(scratch.write("a", ""))->text(), "");
}

TEST(MappedFile, KeepsItsBytesWhenTheFileIsRemoved) {
  const ScratchDirectory scratch;
  const auto file = MappedFile::open(scratch.write("a", "three"));
  std::filesystem::remove(scratch / "a");
  EXPECT_EQ(file->text(), "three");
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  const auto message = [](const std::filesystem::path& path) {
    return refusal(path.string(), [&] { MappedFile::open(path); });
  };
  EXPECT_EQ(message(scratch / "pipe"), "is a pipe, not a regular file");
  EXPECT_EQ(message(scratch.path()), "is a directory, not a regular file");
  EXPECT_EQ(message("/dev/zero"), "is a device, not a regular file");
  EXPECT_EQ(message(scratch / "none"), "cannot open: no such file or directory");
}

}  // namespace
}  // namespace lathe::io
