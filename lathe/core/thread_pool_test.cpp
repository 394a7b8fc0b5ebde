#include "lathe/core/thread_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lathe {
namespace {

TEST(ThreadPool, RunsEveryTaskExactlyOnce) {
  ThreadPool pool(3);
  for (const auto shares : {ThreadPool::Shares::Dealt, ThreadPool::Shares::Ranges})
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> counts(static_cast<std::size_t>(2 + round % 17));
      pool.run(
          std::ssize(counts),
          [&](std::int64_t index, int) { ++counts[static_cast<std::size_t>(index)]; }, shares);
      for (const auto& count : counts) ASSERT_EQ(count.load(), 1);
    }
}

// Every thread waits in its first task until all have one, so that none takes another's.
TEST(ThreadPool, BeginsWithNeighboursWhereSharesAreRanges) {
  ThreadPool pool(3);
  std::vector<std::int64_t> first(3, -1);
  std::atomic<int> begun{0};
  pool.run(
      8,
      [&](std::int64_t index, int thread) {
        std::int64_t& mine = first[static_cast<std::size_t>(thread)];
        if (mine >= 0) return;
        mine = index;
        begun.fetch_add(1);
        while (begun.load() < 3) std::this_thread::yield();
      },
      ThreadPool::Shares::Ranges);
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 3, 6}));
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

// Threads that come late find another run: more of them than cores, and runs of a few small tasks.
TEST(ThreadPool, CallsNoTaskOfARunThatIsOver) {
  ThreadPool pool(8);
  for (std::int64_t round = 0; round < 20000; ++round) {
    const std::int64_t num_tasks = 2 + round % 5;
    std::atomic<std::int64_t> calls{0}, sum{0};
    pool.run(num_tasks, [&](std::int64_t index, int) {
      calls.fetch_add(1);
      sum.fetch_add(index);
    });
    ASSERT_EQ(calls.load(), num_tasks);
    ASSERT_EQ(sum.load(), num_tasks * (num_tasks - 1) / 2);
  }
}

// A thread that holds a task must not keep the others from the rest.
TEST(ThreadPool, HandsTasksToWhoeverIsFree) {
  ThreadPool pool(4);
  std::atomic<int> others{0};
  pool.run(50, [&](std::int64_t index, int) {
    if (index != 0) {
      others.fetch_add(1);
      return;
    }
    while (others.load() < 49) std::this_thread::yield();
  });
  EXPECT_EQ(others.load(), 49);
}

}  // namespace
}  // namespace lathe
