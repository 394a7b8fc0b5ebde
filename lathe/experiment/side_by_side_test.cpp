#include "lathe/experiment/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "lathe/core/testing/error_text.h"

namespace lathe::experiment {
namespace {

using testing::ElementsAre;

TEST(SideBySide, DoesAllJobsEachOnItsShareOfTheThreads) {
  ThreadPool pool(4);
  std::vector<int> threads(3);
  std::latch both(2);
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < 3; ++i)
    jobs.emplace_back([&, i](const engine::ExecutionOptions& execution, const Callbacks&) {
      threads[i] = execution.pool->num_threads();
      if (i < 2) both.arrive_and_wait();  // would wait for ever if they came one after another
    });
  std::int64_t done = 0;
  Callbacks callbacks;
  callbacks.progress = [&](const Progress& now) { done = now.done; };
  do_side_by_side(jobs, 2, {.pool = &pool}, callbacks);
  EXPECT_THAT(threads, ElementsAre(2, 2, 2));
  EXPECT_EQ(done, 3);
}

TEST(SideBySide, OneAtATimeIsTheCallersOwn) {
  ThreadPool pool(4);
  std::vector<int> order;
  std::vector<Job> jobs;
  for (int i = 0; i < 3; ++i)
    jobs.emplace_back([&, i](const engine::ExecutionOptions& execution, const Callbacks&) {
      EXPECT_EQ(execution.pool, &pool);
      order.push_back(i);
    });
  do_side_by_side(jobs, 1, {.pool = &pool}, {});
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(SideBySide, EndsAllWhenOneFails) {
  std::latch both(2);
  const std::vector<Job> jobs{[&](const engine::ExecutionOptions&, const Callbacks& callbacks) {
                                both.arrive_and_wait();
                                while (!callbacks.stops()) std::this_thread::yield();
                                throw Interrupted();
                              },
                              [&](const engine::ExecutionOptions&, const Callbacks&) {
                                both.arrive_and_wait();
                                fail("the second fails");
                              }};
  EXPECT_EQ(error_text([&] { do_side_by_side(jobs, 2, {}, {}); }), "the second fails");
}

TEST(SideBySide, StopsWhenTheCallerWantsTo) {
  std::atomic<bool> stops = false;
  std::atomic<int> num_begun = 0;
  std::vector<Job> jobs;
  for (int i = 0; i < 8; ++i)
    jobs.emplace_back([&](const engine::ExecutionOptions&, const Callbacks& callbacks) {
      if (++num_begun == 2) stops = true;
      while (!callbacks.stops()) std::this_thread::yield();
      throw Interrupted();
    });
  Callbacks callbacks;
  callbacks.should_stop = [&] { return stops.load(); };
  EXPECT_THROW(do_side_by_side(jobs, 2, {}, callbacks), Interrupted);
  EXPECT_EQ(num_begun, 2);
}

}  // namespace
}  // namespace lathe::experiment
