#include "lathe/core/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe {
namespace {

// A plan's kernels follow each other within microseconds, far less than waking a thread costs, so a
// worker looks for the next job for a moment before it sleeps.
constexpr int kSpins = 4000;

void pause_briefly() {
  __builtin_ia32_pause();
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
    generation_.fetch_add(1);
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
  check(busy_.load() == 0, "a thread pool that is not already running");
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    num_tasks_ = num_tasks;
    next_.store(0);
    busy_.store(static_cast<int>(workers_.size()));
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  take_tasks(0);
  // Every worker reports back even when it found nothing to do, so none can still hold `task`.
  while (busy_.load(std::memory_order_acquire) != 0) pause_briefly();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::take_tasks(int thread) {
  for (;;) {
    const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= num_tasks_) return;
    try {
      (*task_)(index, thread);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins && generation_.load(std::memory_order_acquire) == seen; ++spin)
      pause_briefly();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load()) return;
    take_tasks(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace lathe
