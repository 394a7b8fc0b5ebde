#include "lathe/engine/cpu/stage_clock.h"

#include <gtest/gtest.h>

#include "lathe/core/thread_pool.h"

namespace lathe::engine {
namespace {

void run_tasks(StageClock& clock, ThreadPool& pool, std::int64_t tasks) {
  clock.time_tasks([](std::int64_t, int) {},
                   [&](const StageClock::Task& task) { pool.run(tasks, task); });
}

TEST(StageClock, CountsTasksAndMeetingsOfEachStage) {
  ThreadPool pool(3);
  StageClock clock(2, pool.num_threads());
  for (int round = 0; round < 2; ++round) {
    clock.time_stage(0, [&] { run_tasks(clock, pool, 7); });
    clock.time_stage(1, [&] {
      run_tasks(clock, pool, 4);
      run_tasks(clock, pool, 1);
    });
  }
  EXPECT_EQ(clock.times()[0].tasks, 14);
  EXPECT_EQ(clock.times()[0].meetings, 2);
  EXPECT_EQ(clock.times()[1].tasks, 10);
  EXPECT_EQ(clock.times()[1].meetings, 4);
}

TEST(StageClock, DividesAStageAmongItsThreads) {
  ThreadPool pool(3);
  StageClock clock(1, pool.num_threads());
  clock.time_stage(0, [&] { run_tasks(clock, pool, 20); });
  const StageTime& time = clock.times()[0];
  EXPECT_GE(time.alone, 0);
  EXPECT_GE(time.before, 0);
  EXPECT_GE(time.behind, 0);
  EXPECT_LE(time.busy + time.before + time.behind, 3 * (time.wall - time.alone) * (1 + 1e-9));
}

TEST(StageClock, CountsNothingOutsideOfStages) {
  ThreadPool pool(2);
  StageClock clock(1, pool.num_threads());
  run_tasks(clock, pool, 5);
  EXPECT_EQ(clock.times()[0].tasks, 0);
  EXPECT_EQ(clock.times()[0].wall, 0);
}

}  // namespace
}  // namespace lathe::engine
