#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/study/history.h"

namespace lathe::study {

/// The complete trials of a study, sorted into the generations they were proposed for.
///
/// A sampler that works in generations writes the generation into a system attribute of each trial
/// it proposes. Any process can then work out the sampler's state from the history alone.
class Generations {
 public:
  explicit Generations(std::string attribute) : attribute_(std::move(attribute)) {}

  /// Takes in the trials that completed since; gives the first generation that changed, or nothing.
  std::optional<int> update(const History& history);
  /// Numbers of the trials of a generation, ascending.
  const std::vector<int>& members(int generation) const;
  /// Complete trials that belong to none, ascending.
  const std::vector<int>& strangers() const { return strangers_; }
  const std::string& attribute() const { return attribute_; }

 private:
  std::string attribute_;
  std::vector<std::vector<int>> members_;
  std::vector<int> strangers_;
  std::size_t num_read_ = 0;
};

}  // namespace lathe::study
