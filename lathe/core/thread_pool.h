#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lathe {

/// The threads this process may run on: its CPU affinity, not the machine's size.
int num_available_threads();

/// A fixed set of threads that runs numbered tasks and waits for them.
///
/// Tasks are handed out one at a time, so their order and owner vary from run to run: a task must
/// write only what is its own, and the number of tasks must follow from the problem's extents,
/// never from the number of threads. Then every thread count gives the same bits.
///
/// A run ends with its last task. A thread that took none is not waited for: where others use the
/// cores too, it may get to run long after that.
class ThreadPool {
 public:
  /// `num_threads` counts the calling thread; 0 means as many as are available.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs task(index, thread) for every index below `num_tasks`; `thread` is below num_threads().
  /// The first exception of a task is rethrown here once all are done. Not reentrant.
  void run(std::int64_t num_tasks, const std::function<void(std::int64_t, int)>& task);

 private:
  void work(int thread);
  void take_tasks(int thread);
  bool has_work() const;

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // Of the run under way. Only who has taken a task of it may read them.
  const std::function<void(std::int64_t, int)>* task_ = nullptr;
  std::int64_t num_tasks_ = 0;
  /// The number of the run, and in the lower half how many of its tasks nobody has taken.
  std::atomic<std::uint64_t> open_{0};
  std::atomic<std::int64_t> unfinished_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::exception_ptr error_;
};

}  // namespace lathe
