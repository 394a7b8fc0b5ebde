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
/// Every thread has a share of the tasks and takes those of others when its own are done, so their
/// order and owner vary from run to run: a task must write only what is its own, and the number of
/// tasks must follow from the problem's extents, never from the number of threads. Then every
/// thread count gives the same bits.
///
/// A run ends with its last task. A thread that took none is not waited for: where others use the
/// cores too, it may get to run long after that.
class ThreadPool {
 public:
  /// Which tasks a thread begins with.
  enum class Shares {
    Dealt,   ///< t, t + num_threads(), ...: all threads are near each other in the tasks' order
    Ranges,  ///< neighbours: a thread finds what it made in an earlier run of the same order
  };

  /// `num_threads` counts the calling thread; 0 means as many as are available.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(shares_.size()); }

  /// Runs task(index, thread) for every index below `num_tasks`; `thread` is below num_threads().
  /// The first exception of a task is rethrown here once all are done. Not reentrant.
  void run(std::int64_t num_tasks, const std::function<void(std::int64_t, int)>& task,
           Shares shares = Shares::Dealt);

 private:
  /// The number of a run, and in the lower half how many tasks: of all, taken or finished.
  using Count = std::uint64_t;
  /// Numbers that different threads write lie on different lines, or each would wait for the other.
  static constexpr std::size_t kLine = 64;
  struct alignas(kLine) Line {
    std::atomic<Count> count{0};
  };
  /// The tasks that a thread begins with. Whoever takes one counts it here.
  struct Share {
    Line taken;
    Line finished;  ///< of all tasks, by this thread
  };

  void work(int thread);
  void take_tasks(int thread, Count open);
  std::int64_t take_from(int owner, Count open);
  std::int64_t task_of(int owner, std::int64_t index, Count open) const;
  bool is_finished(Count open) const;

  std::vector<Share> shares_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // Of the run under way. Only who has taken a task of it may read it.
  const std::function<void(std::int64_t, int)>* task_ = nullptr;
  Shares kind_ = Shares::Dealt;
  bool is_running_ = false;
  std::exception_ptr error_;
  alignas(kLine) std::atomic<Count> open_{0};
  alignas(kLine) std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace lathe
