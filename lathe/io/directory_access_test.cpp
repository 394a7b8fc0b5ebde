#include "lathe/io/directory_access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

using Open = FileDescriptor (*)(const std::filesystem::path&, std::string_view);

// Both ways of opening must refuse the same names.
class OpenBeneath : public testing::TestWithParam<Open> {
 protected:
  // scratch/secret is outside, scratch/model is the directory.
  OpenBeneath() {
    namespace fs = std::filesystem;
    scratch_.write("secret", "outside");
    fs::create_directories(model_ / "sub");
    scratch_.write("model/a", "inside");
    scratch_.write("model/sub/b", "deeper");
    fs::create_symlink("a", model_ / "link-inside");
    fs::create_symlink("../secret", model_ / "link-outside");
    fs::create_symlink(scratch_ / "secret", model_ / "link-absolute");
    fs::create_symlink("..", model_ / "link-parent");
    fs::create_symlink("loop", model_ / "loop");
    fs::create_symlink("/proc/self/root", model_ / "link-root");
    ::mkfifo((model_ / "pipe").c_str(), 0600);
  }

  std::string open(std::string_view name) const {
    std::string content = "accepted";
    const std::string message = refusal(model_.string(), [&] {
      content = MappedFile::map(GetParam()(model_, name), model_ / name)->text();
    });
    return message == "accepted" ? content : message;
  }

  ScratchDirectory scratch_;
  std::filesystem::path model_ = scratch_ / "model";
};

TEST_P(OpenBeneath, OpensFilesInside) {
  EXPECT_EQ(open("a"), "inside");
  EXPECT_EQ(open("./a"), "inside");
  EXPECT_EQ(open("sub/b"), "deeper");
  EXPECT_EQ(open("link-inside"), "inside");
}

TEST_P(OpenBeneath, RefusesNamesByTheirText) {
  EXPECT_EQ(open(""), R"(file name "" is empty)");
  EXPECT_EQ(open("../secret"), R"(file name "../secret" contains "..")");
  EXPECT_EQ(open("sub/../../secret"), R"(file name "sub/../../secret" contains "..")");
  EXPECT_EQ(open("sub/.."), R"(file name "sub/.." contains "..")");
  EXPECT_EQ(open("/etc/passwd"),
            R"(file name "/etc/passwd" is absolute, expected one inside the directory)");
  EXPECT_EQ(open("..\\secret"), R"(file name "..\\secret" contains a backslash)");
  EXPECT_EQ(open(std::string_view("a\0b", 3)), R"(file name "a\u0000b" contains a NUL byte)");
  EXPECT_EQ(open(std::string(5000, 'x')),
            "file name \"" + std::string(120, 'x') + "...\" is longer than 4096 bytes");
}

TEST_P(OpenBeneath, RefusesLinksThatLeadOutside) {
  for (const char* name :
       {"link-outside", "link-absolute", "link-parent/secret", "link-root/etc/passwd"})
    EXPECT_EQ(open(name), "file name \"" + std::string(name) + "\" leads outside the directory");
}

TEST_P(OpenBeneath, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(open("pipe"), "pipe: is a pipe, not a regular file");
  EXPECT_EQ(open("sub"), "sub: is a directory, not a regular file");
  EXPECT_EQ(open("none"), "none: cannot open: no such file or directory");
  EXPECT_EQ(open("a/b"), "a/b: cannot open: not a directory");
  EXPECT_EQ(open("loop"), "loop: cannot open: too many levels of symbolic links");
}

INSTANTIATE_TEST_SUITE_P(ByKernel, OpenBeneath, testing::Values(&open_beneath));
INSTANTIATE_TEST_SUITE_P(ByResolving, OpenBeneath, testing::Values(&open_beneath_by_resolving));

TEST(OpenBeneathDirectory, MustExist) {
  EXPECT_EQ(refusal("/nowhere", [] { open_beneath("/nowhere", "a"); }),
            "cannot open: no such file or directory");
}

}  // namespace
}  // namespace lathe::io
