#include "lathe/core/thread_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lathe {
namespace {

TEST(ThreadPool, RunsEveryTaskExactlyOnce) {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> counts(17);
    pool.run(17, [&](std::int64_t index, int) { ++counts[static_cast<std::size_t>(index)]; });
    for (const auto& count : counts) ASSERT_EQ(count.load(), 1);
  }
}

TEST(ThreadPool, PassesATasksExceptionToTheCaller) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(8,
                        [](std::int64_t index, int) {
                          if (index == 5) throw std::runtime_error("five");
                        }),
               std::runtime_error);
  int ran = 0;
  pool.run(1, [&](std::int64_t, int) { ++ran; });
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace lathe
