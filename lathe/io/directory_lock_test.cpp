#include "lathe/io/directory_lock.h"

#include <gtest/gtest.h>

#include <optional>

#include "lathe/core/testing/error_text.h"

namespace lathe::io {
namespace {

TEST(DirectoryLock, IsHeldByOneAtATime) {
  const std::filesystem::path path = testing::TempDir() + "directory_lock_test";
  std::filesystem::create_directories(path);
  std::optional<DirectoryLock> first(path);
  EXPECT_EQ(error_text([&] { DirectoryLock second(path); }),
            path.string() + ": another process is at work there");
  DirectoryLock moved = std::move(*first);
  first.reset();
  EXPECT_NE(error_text([&] { DirectoryLock second(path); }), "no error") << "it was moved";
  moved = DirectoryLock(path / "not there");
  EXPECT_NO_THROW(DirectoryLock third(path));
  EXPECT_TRUE(std::filesystem::is_empty(path));
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace lathe::io
