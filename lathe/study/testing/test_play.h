#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// Plays a sampler against an objective without a study or a storage around it, for tests.
class Play {
 public:
  explicit Play(Sampler& sampler, std::uint64_t seed = 0,
                std::vector<Direction> directions = {Direction::Minimize},
                const Space* space = nullptr)
      : sampler_(sampler), seed_(seed), space_(space), history_(std::move(directions)) {}

  /// Asks for the value of a parameter.
  using Suggest = std::function<double(const std::string&, const Distribution&)>;
  /// Fills in state and values of the record.
  using Objective = std::function<void(const Suggest&, TrialRecord&)>;

  const TrialRecord& run(const Objective& objective) {
    const std::size_t index = history_.trials().size();
    history_.change([&](auto& trials) {
      trials.push_back({.number = static_cast<int>(index), .state = TrialState::Running});
    });
    TrialRecord record = history_.trials()[index];
    const Proposal proposal{.seed = seed_,
                            .number = record.number,
                            .space = space_,
                            .system_attributes = &record.system_attributes};
    const Assignment proposed = sampler_.propose(history_, proposal);
    const Suggest suggest = [&](const std::string& name, const Distribution& distribution) {
      double value = 0;
      const Parameter* found = nullptr;
      for (const Parameter& parameter : proposed)
        if (parameter.name == name && *parameter.distribution == distribution) found = &parameter;
      if (found != nullptr)
        value = found->value;
      else
        value = sampler_.suggest(history_, proposal, record.parameters, name, distribution);
      DistributionPtr& shared = distributions_[name];
      if (shared == nullptr || *shared != distribution)
        shared = std::make_shared<const Distribution>(distribution);
      record.parameters.push_back({name, shared, value});
      return value;
    };
    record.state = TrialState::Complete;
    objective(suggest, record);
    history_.change([&](auto& trials) { trials[index] = std::move(record); });
    sampler_.told(history_, history_.trials()[index]);
    return history_.trials()[index];
  }
  const History& history() const { return history_; }

 private:
  Sampler& sampler_;
  std::uint64_t seed_;
  const Space* space_;
  History history_;
  std::map<std::string, DistributionPtr> distributions_;
};

}  // namespace lathe::study
