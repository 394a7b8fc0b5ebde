#include "lathe/engine/cpu/stage_clock.h"

namespace lathe::engine {
namespace {

double in_seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void StageClock::time_stage(std::size_t stage, const std::function<void()>& work) {
  stage_ = &times_[stage];
  const Clock::time_point start = Clock::now();
  work();
  const double wall = in_seconds(Clock::now() - start);
  stage_->wall += wall;
  stage_->alone += wall;
  stage_ = nullptr;
}

void StageClock::time_tasks(const Task& task, const std::function<void(const Task&)>& share_out) {
  if (stage_ == nullptr) return share_out(task);  // before the first stage
  std::vector<ThreadTime> threads(static_cast<std::size_t>(threads_));
  const Clock::time_point start = Clock::now();
  share_out([&](std::int64_t index, int thread) {
    ThreadTime& own = threads[static_cast<std::size_t>(thread)];
    const Clock::time_point begin = Clock::now();
    task(index, thread);
    own.last = Clock::now();
    own.busy += own.last - begin;
    if (own.tasks++ == 0) own.first = begin;
  });
  const Clock::time_point end = Clock::now();
  stage_->alone -= in_seconds(end - start);
  ++stage_->meetings;
  for (const ThreadTime& own : threads) {
    stage_->busy += in_seconds(own.busy);
    stage_->tasks += own.tasks;
    stage_->before += in_seconds((own.tasks > 0 ? own.first : end) - start);
    if (own.tasks > 0) stage_->behind += in_seconds(end - own.last);
  }
}

}  // namespace lathe::engine
