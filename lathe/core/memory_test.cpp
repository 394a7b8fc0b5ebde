#include "lathe/core/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

namespace lathe {
namespace {

TEST(AllocateMemory, LiesOnACacheLineAndCanBeWrittenToItsEnd) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100},
                                  kLargeMemory - 1, kLargeMemory, kLargeMemory + 12345}) {
    std::byte* const memory = allocate_memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u) << bytes;
    std::fill(memory, memory + bytes, std::byte{7});
    free_memory(memory, bytes);
  }
}

TEST(AllocateMemory, IsZeroWhereItIsLargeEvenAfterOtherUse) {
  for (int round = 0; round < 3; ++round) {
    std::byte* const memory = allocate_memory(kLargeMemory + 1);
    EXPECT_TRUE(std::all_of(memory, memory + kLargeMemory + 1,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    std::fill(memory, memory + kLargeMemory + 1, std::byte{7});
    free_memory(memory, kLargeMemory + 1);
  }
}

TEST(AllocateMemory, ThrowsWhereTheMachineHasNotSoMuch) {
  EXPECT_THROW(allocate_memory(std::size_t{1} << 62), std::bad_alloc);
  EXPECT_THROW(allocate_memory(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
}

}  // namespace
}  // namespace lathe
