#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "lathe/study/storages/storage.h"

namespace lathe::study {

/// Renews the lease of one trial at a time from a thread of its own, three times in a lease, so
/// that whoever evaluates the trial may take as long as it wants.
class Heartbeats {
 public:
  /// Without a lease there is nothing to renew, and no thread.
  Heartbeats(std::shared_ptr<Storage> storage, std::chrono::milliseconds lease);

  /// From now on this trial, which was claimed or written to just before.
  void watch(TrialId trial, const Owner& owner);
  void rest();
  /// Whether the trial that is watched was found to be another's.
  bool is_lost() const { return is_lost_; }

 private:
  void run(const std::stop_token& token, std::chrono::milliseconds interval);
  bool beat(std::unique_ptr<Storage>& own, TrialId trial, const Owner& owner) const;

  // Shared with the study, where threads may share it; else what it opens again.
  std::shared_ptr<Storage> storage_;
  std::mutex mutex_;  // guards trial_ and owner_
  std::condition_variable_any changed_;
  TrialId trial_ = 0;
  Owner owner_;  // empty: no trial
  std::atomic<bool> is_lost_{false};
  std::jthread thread_;  // last, since it uses the others
};

}  // namespace lathe::study
