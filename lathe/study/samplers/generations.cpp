#include "lathe/study/samplers/generations.h"

#include <algorithm>
#include <charconv>

namespace lathe::study {

namespace {

void insert_sorted(std::vector<int>& numbers, int number) {
  numbers.insert(std::upper_bound(numbers.begin(), numbers.end(), number), number);
}

}  // namespace

std::optional<int> Generations::update(const History& history) {
  std::optional<int> changed;
  for (; num_read_ < history.finished().size(); ++num_read_) {
    const TrialRecord& trial = history.trials()[history.finished()[num_read_]];
    if (trial.state != TrialState::Complete) continue;
    if (trial.values.size() != history.directions().size()) continue;
    const auto found = trial.system_attributes.find(attribute_);
    int generation = -1;
    if (found != trial.system_attributes.end()) {
      const std::string& text = found->second;
      std::from_chars(text.data(), text.data() + text.size(), generation);
    }
    // A generation has at least one trial, so none can have a number above its trial's.
    if (generation < 0 || generation > trial.number) {
      insert_sorted(strangers_, trial.number);
      continue;
    }
    if (generation >= static_cast<int>(members_.size())) members_.resize(generation + 1);
    insert_sorted(members_[generation], trial.number);
    changed = std::min(changed.value_or(generation), generation);
  }
  return changed;
}

const std::vector<int>& Generations::members(int generation) const {
  static const std::vector<int> kNobody;
  return generation < static_cast<int>(members_.size()) ? members_[generation] : kNobody;
}

}  // namespace lathe::study
