#include "lathe/experiment/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "lathe/core/error.h"

namespace lathe::experiment {
namespace {

class Jobs {
 public:
  Jobs(const std::vector<Job>& jobs, int at_once, const engine::ExecutionOptions& execution,
       const Callbacks& callbacks)
      : jobs_(jobs),
        at_once_(at_once),
        execution_(execution),
        callbacks_(callbacks),
        errors_(jobs.size()) {}

  void run() {
    std::vector<std::thread> threads;
    for (int i = 1; i < at_once_; ++i) threads.emplace_back([this] { take_jobs(); });
    take_jobs();
    for (std::thread& thread : threads) thread.join();
    // What was asked to stop because another failed has nothing to say.
    std::exception_ptr interruption;
    for (const std::exception_ptr& error : errors_) {
      if (!error) continue;
      try {
        std::rethrow_exception(error);
      } catch (const Interrupted&) {
        interruption = error;
      }
    }
    if (interruption) std::rethrow_exception(interruption);
  }

 private:
  void take_jobs() {
    const int share = execution_.pool == nullptr ? 1 : execution_.pool->num_threads() / at_once_;
    ThreadPool pool(std::max(1, share));
    engine::ExecutionOptions own = execution_;
    own.pool = &pool;
    const Callbacks callbacks{.progress = [this](const Progress& now) { tell(now.activity); },
                              .notice =
                                  [this](const std::string& line) {
                                    const std::scoped_lock lock(mutex_);
                                    callbacks_.warn(line);
                                  },
                              .should_stop = [this] { return stops(); }};
    for (std::size_t i = next_++; i < jobs_.size() && !stops(); i = next_++) {
      try {
        jobs_[i](own, callbacks);
        ++num_done_;
        tell({});
      } catch (...) {
        errors_[i] = std::current_exception();
        has_failed_ = true;
      }
    }
  }

  bool stops() {
    if (has_failed_) return true;
    const std::scoped_lock lock(mutex_);
    if (!callbacks_.stops()) return false;
    is_interrupted_ = true;
    return true;
  }

  void tell(const std::string& note) {
    const std::scoped_lock lock(mutex_);
    callbacks_.tell({.activity = fmt::format("running {} at once", at_once_),
                     .unit = "runs",
                     .done = num_done_,
                     .total = static_cast<std::int64_t>(jobs_.size()),
                     .note = note});
  }

 public:
  bool is_interrupted() const { return is_interrupted_; }

 private:
  const std::vector<Job>& jobs_;
  const int at_once_;
  const engine::ExecutionOptions& execution_;
  const Callbacks& callbacks_;
  std::mutex mutex_;  // of the callbacks
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> num_done_ = 0;
  std::atomic<bool> has_failed_ = false, is_interrupted_ = false;
  std::vector<std::exception_ptr> errors_;  // of each job
};

}  // namespace

void do_side_by_side(const std::vector<Job>& jobs, int at_once,
                     const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  at_once = std::min(at_once, static_cast<int>(jobs.size()));
  if (at_once <= 1) {
    for (const Job& job : jobs) job(execution, callbacks);
    return;
  }
  Jobs all(jobs, at_once, execution, callbacks);
  all.run();
  if (all.is_interrupted()) throw Interrupted();
}

}  // namespace lathe::experiment
