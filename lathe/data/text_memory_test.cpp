#include "lathe/data/text_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <limits>
#include <string>

namespace lathe::data {
namespace {

namespace fs = std::filesystem;

class ControlGroupLimit : public testing::Test {
 protected:
  ControlGroupLimit() {
    std::string name = (fs::temp_directory_path() / "lathe-groups-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~ControlGroupLimit() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  fs::path root_;
};

TEST_F(ControlGroupLimit, IsTheLeastOfAGroupAndItsParents) {
  write("user/memory.max", "1000");
  write("user/job/memory.max", "max");
  EXPECT_EQ(control_group_limit("0::/user/job\n", root_), 1000);
  write("user/job/memory.max", "600");
  EXPECT_EQ(control_group_limit("0::/user/job\n", root_), 600);
}

TEST_F(ControlGroupLimit, KnowsTheFirstVersion) {
  write("memory/job/memory.limit_in_bytes", "700");
  EXPECT_EQ(control_group_limit("5:cpu:/other\n4:cpuacct,memory:/job\n", root_), 700);
}

TEST_F(ControlGroupLimit, IsEndlessWithoutGroups) {
  EXPECT_EQ(control_group_limit("", root_), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(control_group_limit("0::/\n1:cpu:/\nx\n", root_),
            std::numeric_limits<std::int64_t>::max());
}

TEST(TextMemory, IsAnEighthOfMemoryAndOneGigabyteAtMost) {
  EXPECT_GT(text_memory(), 0);
  EXPECT_LE(text_memory(), std::int64_t{1} << 30);
}

}  // namespace
}  // namespace lathe::data
