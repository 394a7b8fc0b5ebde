#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// The trials of a study as this process knows them.
///
/// `finished()` only ever grows, so a sampler that keeps counts or sorted columns of its own reads
/// no trial twice: that is what keeps a suggestion cheap after ten thousand trials. Two processes
/// learn of results in different orders, so what a sampler proposes must not depend on the order.
class History {
 public:
  explicit History(std::vector<Direction> directions) : directions_(std::move(directions)) {}

  const std::vector<Direction>& directions() const { return directions_; }
  /// By number: trials()[n].number == n.
  std::span<const TrialRecord> trials() const { return trials_; }
  /// Numbers of the finished trials, failed ones included, in the order this process learned of
  /// them.
  std::span<const int> finished() const { return finished_; }
  /// Numbers of the others, in order.
  std::span<const int> unfinished() const { return open_; }

  /// Lets `change` edit the list of trials (add, replace unfinished ones), then brings
  /// `finished()` up to date.
  template <typename Change>
  void change(Change&& change) {
    change(trials_);
    notice_finished();
  }

 private:
  void notice_finished();

  std::vector<Direction> directions_;
  std::vector<TrialRecord> trials_;
  std::vector<int> finished_;
  std::vector<int> open_;  // numbers of the trials that were not finished last time
  std::size_t num_seen_ = 0;
};

}  // namespace lathe::study
