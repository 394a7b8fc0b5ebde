#include "lathe/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lathe/core/error.h"

namespace lathe {
namespace {

// A plan's kernels follow each other within microseconds, far less than waking a thread costs, so a
// worker looks for the next job for a moment before it sleeps.
constexpr std::chrono::microseconds kSpin{1000};
// What is waited for may be queued behind the thread that waits, on the same core.
constexpr int kPausesOfTurn = 64;

constexpr std::uint64_t kTasks = 0xffffffff;  // the lower half of a count

std::uint64_t run_of(std::uint64_t count) {
  return count & ~kTasks;
}
std::int64_t tasks_of(std::uint64_t count) {
  return static_cast<std::int64_t>(count & kTasks);
}

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

ThreadPool::ThreadPool(int num_threads)
    : shares_(static_cast<std::size_t>(num_threads > 0 ? num_threads : num_available_threads())) {
  for (int thread = 1; thread < this->num_threads(); ++thread)
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

void ThreadPool::run(std::int64_t num_tasks, const std::function<void(std::int64_t, int)>& task,
                     Shares shares) {
  if (num_tasks <= 0) return;
  if (workers_.empty() || num_tasks == 1) {
    for (std::int64_t index = 0; index < num_tasks; ++index) task(index, 0);
    return;
  }
  check(!is_running_, "a thread pool that is not already running");
  check(num_tasks <= static_cast<std::int64_t>(kTasks), "fewer than 2^32 tasks");
  is_running_ = true;
  task_ = &task;
  kind_ = shares;
  const Count open = (run_of(open_.load()) + kTasks + 1) | static_cast<std::uint64_t>(num_tasks);
  open_.store(open);
  // Who counts itself as a sleeper looks for a run afterwards, so one of the two sees the other.
  if (sleepers_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
    }  // it sleeps by now, or has not looked yet
    wake_.notify_all();
  }
  take_tasks(0, open);
  int pauses = 0;
  while (!is_finished(open)) wait_a_turn(pauses);
  is_running_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// A count that was left by an earlier run stands for none, so that nobody has to clear it. A run
// does not end before all of its tasks were taken: who comes late finds none, or a later run, and
// calls no task of one that is over.
std::int64_t ThreadPool::take_from(int owner, Count open) {
  const std::int64_t threads = num_threads();
  const std::int64_t size = (tasks_of(open) - owner + threads - 1) / threads;
  std::atomic<Count>& taken = shares_[static_cast<std::size_t>(owner)].taken.count;
  Count before = taken.load(std::memory_order_acquire);
  while (true) {
    const auto age = static_cast<std::int64_t>(run_of(open) - run_of(before));
    const std::int64_t index = age == 0 ? tasks_of(before) : 0;
    if (age < 0 || index >= size) return -1;
    const Count after = run_of(open) | static_cast<std::uint64_t>(index + 1);
    if (taken.compare_exchange_weak(before, after, std::memory_order_acq_rel)) return index;
  }
}

// The first shares have one task more where threads do not divide them, in either kind.
std::int64_t ThreadPool::task_of(int owner, std::int64_t index, Count open) const {
  const std::int64_t threads = num_threads();
  if (kind_ == Shares::Dealt) return owner + index * threads;
  return owner * (tasks_of(open) / threads) +
         std::min<std::int64_t>(owner, tasks_of(open) % threads) + index;
}

void ThreadPool::take_tasks(int thread, Count open) {
  std::uint64_t num_finished = 0;
  for (int i = 0; i < num_threads(); ++i) {
    const std::uint64_t before = num_finished;
    for (;; ++num_finished) {
      const int owner = (thread + i) % num_threads();
      const std::int64_t index = take_from(owner, open);
      if (index < 0) break;
      try {
        (*task_)(task_of(owner, index, open), thread);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
    if (num_finished > before)
      shares_[static_cast<std::size_t>(thread)].finished.count.store(run_of(open) | num_finished,
                                                                     std::memory_order_release);
  }
}

bool ThreadPool::is_finished(Count open) const {
  std::int64_t finished = 0;
  for (const Share& share : shares_) {
    const Count count = share.finished.count.load(std::memory_order_acquire);
    if (run_of(count) == run_of(open)) finished += tasks_of(count);
  }
  return finished == tasks_of(open);
}

void ThreadPool::work(int thread) {
  using Clock = std::chrono::steady_clock;
  Count seen = 0;  // the run whose tasks this thread knows to be taken
  const auto has_work = [&] { return open_.load() != seen || stopping_.load(); };
  while (!stopping_.load()) {
    const Clock::time_point end = Clock::now() + kSpin;
    int pauses = 0;
    while (!has_work() && (pauses % kPausesOfTurn != 0 || Clock::now() < end)) wait_a_turn(pauses);
    if (!has_work()) {
      sleepers_.fetch_add(1);
      std::unique_lock lock(mutex_);
      wake_.wait(lock, has_work);
      sleepers_.fetch_sub(1);
    }
    seen = open_.load();
    take_tasks(thread, seen);
  }
}

}  // namespace lathe
