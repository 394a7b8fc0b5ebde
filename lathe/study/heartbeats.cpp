#include "lathe/study/heartbeats.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::study {

Heartbeats::Heartbeats(std::shared_ptr<Storage> storage, std::chrono::milliseconds lease)
    : storage_(std::move(storage)) {
  if (lease.count() == 0) return;
  const auto interval = std::max(lease / 3, std::chrono::milliseconds(1));
  thread_ = std::jthread([this, interval](const std::stop_token& token) { run(token, interval); });
}

void Heartbeats::watch(TrialId trial, const Owner& owner) {
  const std::scoped_lock lock(mutex_);
  trial_ = trial;
  owner_ = owner;
  is_lost_ = false;
}

void Heartbeats::rest() {
  watch(0, {});
}

// Whether the trial is still ours, as far as we can tell.
bool Heartbeats::beat(std::unique_ptr<Storage>& own, TrialId trial, const Owner& owner) const {
  try {
    if (!own) own = storage_->reopen();
    return (own ? *own : *storage_).heartbeat(trial, owner);
  } catch (const UserError&) {
    // The storage is away. If it stays away, the thread that evaluates hears of it.
    own.reset();
    return true;
  }
}

void Heartbeats::run(const std::stop_token& token, std::chrono::milliseconds interval) {
  std::unique_ptr<Storage> own;
  std::unique_lock lock(mutex_);
  while (!token.stop_requested()) {
    changed_.wait_for(lock, token, interval, [] { return false; });  // until asked to stop
    if (token.stop_requested() || owner_.empty()) continue;
    const TrialId trial = trial_;
    const Owner owner = owner_;
    lock.unlock();
    const bool is_ours = beat(own, trial, owner);
    lock.lock();
    // Told in between, the trial is no longer ours for a good reason.
    if (!is_ours && owner_ == owner) is_lost_ = true;
  }
}

}  // namespace lathe::study
