#include "lathe/study/history.h"

#include "lathe/core/error.h"

namespace lathe::study {

void History::notice_finished() {
  check(trials_.size() >= num_seen_, "a study not to lose trials");
  // Only trials that were open or are new can have finished, so this does not walk the others.
  for (std::size_t i = num_seen_; i < trials_.size(); ++i) {
    check(trials_[i].number == static_cast<int>(i), "trials to be ordered by number");
    open_.push_back(static_cast<int>(i));
  }
  num_seen_ = trials_.size();
  std::erase_if(open_, [&](int number) {
    const bool has_finished = is_finished(trials_[static_cast<std::size_t>(number)].state);
    if (has_finished) finished_.push_back(number);
    return has_finished;
  });
}

}  // namespace lathe::study
