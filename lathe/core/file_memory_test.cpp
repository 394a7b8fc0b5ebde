#include "lathe/core/file_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace lathe {
namespace {

constexpr std::size_t kPage = 4096;

// Five pages of ones in a file, mapped to be read.
class MappedPages : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::tmpfile();
    ASSERT_NE(file_, nullptr);
    const std::vector<char> ones(5 * kPage, 1);
    ASSERT_EQ(std::fwrite(ones.data(), 1, ones.size(), file_), ones.size());
    ASSERT_EQ(std::fflush(file_), 0);
    void* const memory =
        mmap(nullptr, ones.size(), PROT_READ, MAP_PRIVATE | MAP_POPULATE, fileno(file_), 0);
    ASSERT_NE(memory, MAP_FAILED);
    bytes_ = {static_cast<const std::byte*>(memory), ones.size()};
    add_file_memory(bytes_);
  }
  void TearDown() override {
    remove_file_memory(bytes_);
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    std::fclose(file_);
  }
  // Resident pages of this mapping, as the process's own list of mappings counts them.
  std::size_t resident_pages() const {
    std::FILE* const list = std::fopen("/proc/self/smaps", "r");
    char line[512];
    bool is_here = false;
    long kib = -1;
    while (kib < 0 && std::fgets(line, sizeof line, list) != nullptr) {
      unsigned long begin = 0, end = 0;
      if (std::sscanf(line, "%lx-%lx ", &begin, &end) == 2)
        is_here = begin == reinterpret_cast<std::uintptr_t>(bytes_.data());
      else if (is_here)
        std::sscanf(line, "Rss: %ld kB", &kib);
    }
    std::fclose(list);
    return static_cast<std::size_t>(kib) * 1024 / kPage;
  }

  std::FILE* file_ = nullptr;
  std::span<const std::byte> bytes_;
};

TEST_F(MappedPages, GoWhereBytesFillThemAndComeBackUnchanged) {
  // An emulator may list its mappings without what is resident of them.
  if (resident_pages() == 0) GTEST_SKIP() << "this processor has no count of resident pages";
  ASSERT_EQ(resident_pages(), 5u);
  let_go(bytes_.subspan(100, 3 * kPage));  // fills the second and the third
  EXPECT_EQ(resident_pages(), 3u);
  EXPECT_TRUE(std::all_of(bytes_.begin(), bytes_.end(),
                          [](std::byte byte) { return byte == std::byte{1}; }));
}

TEST_F(MappedPages, AreThoseOfTheFileAlone) {
  EXPECT_TRUE(is_file_memory(bytes_.subspan(7, 9)));
  EXPECT_FALSE(is_file_memory({bytes_.data() + 1, bytes_.size()}));
}

TEST(FileMemory, LeavesOtherMemoryAlone) {
  std::vector<std::byte> bytes(4 * kPage, std::byte{3});
  let_go(bytes);
  EXPECT_FALSE(is_file_memory(bytes));
  EXPECT_TRUE(
      std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{3}; }));
}

}  // namespace
}  // namespace lathe
