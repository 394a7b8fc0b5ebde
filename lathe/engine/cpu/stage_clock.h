#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "lathe/engine/plan_report.h"

namespace lathe::engine {

/// Measures how the threads of a plan spend the time of its stages, one after another.
class StageClock {
 public:
  using Task = std::function<void(std::int64_t, int)>;

  /// From nothing, for a plan of so many stages.
  StageClock(std::size_t stages, int threads) : times_(stages), threads_(threads) {}

  const std::vector<StageTime>& times() const { return times_; }

  /// Runs `work` as what stage `stage` does.
  void time_stage(std::size_t stage, const std::function<void()>& work);

  /// Runs tasks of the stage under way by `share_out`, which calls what it is given for each of
  /// them and returns when all are done.
  void time_tasks(const Task& task, const std::function<void(const Task&)>& share_out);

 private:
  using Clock = std::chrono::steady_clock;
  // Each thread's own, on lines that no other writes.
  struct alignas(64) ThreadTime {
    Clock::time_point first = {}, last = {};
    Clock::duration busy = {};
    std::int64_t tasks = 0;
  };

  std::vector<StageTime> times_;
  int threads_;
  StageTime* stage_ = nullptr;  // under way
};

}  // namespace lathe::engine
