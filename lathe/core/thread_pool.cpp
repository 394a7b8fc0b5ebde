#include "lathe/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lathe/core/error.h"

namespace lathe {
namespace {

// A plan's kernels follow each other within microseconds, far less than waking a thread costs, so a
// worker looks for the next job for a moment before it sleeps: longer than what one thread does by
// itself between two of them.
constexpr std::chrono::microseconds kSpin{2000};
// What is waited for may be queued behind the thread that waits, on the same core.
constexpr int kPausesOfTurn = 64;

constexpr std::uint64_t kCount = 0xffffffff;  // the lower half of `open_`

void wait_a_turn(int& pauses) {
  __builtin_ia32_pause();
  if (++pauses % kPausesOfTurn == 0) sched_yield();
}

}  // namespace

int num_available_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int num_threads) {
  if (num_threads <= 0) num_threads = num_available_threads();
  for (int thread = 1; thread < num_threads; ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t num_tasks, const std::function<void(std::int64_t, int)>& task) {
  if (num_tasks <= 0) return;
  if (workers_.empty() || num_tasks == 1) {
    for (std::int64_t index = 0; index < num_tasks; ++index) task(index, 0);
    return;
  }
  check(unfinished_.load() == 0, "a thread pool that is not already running");
  check(num_tasks <= static_cast<std::int64_t>(kCount), "fewer than 2^32 tasks");
  task_ = &task;
  num_tasks_ = num_tasks;
  unfinished_.store(num_tasks);
  open_.store(((open_.load() >> 32) + 1) << 32 | static_cast<std::uint64_t>(num_tasks));
  // Who counts itself as a sleeper looks for tasks afterwards, so one of the two sees the other.
  if (sleepers_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
    }  // it sleeps by now, or has not looked yet
    wake_.notify_all();
  }
  take_tasks(0);
  int pauses = 0;
  while (unfinished_.load(std::memory_order_acquire) != 0) wait_a_turn(pauses);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// A task is taken by lowering the count, which fails if the run is another by now, and a run does
// not end before the tasks that were taken. So nobody calls a task of a run that is over.
void ThreadPool::take_tasks(int thread) {
  std::uint64_t open = open_.load(std::memory_order_acquire);
  while ((open & kCount) != 0) {
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
    const std::int64_t index = num_tasks_ - static_cast<std::int64_t>(open & kCount);
    try {
      (*task_)(index, thread);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    open = open_.load(std::memory_order_acquire);
  }
}

bool ThreadPool::has_work() const {
  return (open_.load() & kCount) != 0 || stopping_.load();
}

void ThreadPool::work(int thread) {
  using Clock = std::chrono::steady_clock;
  while (!stopping_.load()) {
    const Clock::time_point end = Clock::now() + kSpin;
    int pauses = 0;
    while (!has_work() && (pauses % kPausesOfTurn != 0 || Clock::now() < end)) wait_a_turn(pauses);
    if (!has_work()) {
      sleepers_.fetch_add(1);
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return has_work(); });
      sleepers_.fetch_sub(1);
    }
    take_tasks(thread);
  }
}

}  // namespace lathe
