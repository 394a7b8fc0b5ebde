#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lathe/study/samplers/sampler.h"
#include "lathe/study/space_point.h"

namespace lathe::study {

inline DistributionPtr shared(Distribution distribution) {
  return std::make_shared<const Distribution>(std::move(distribution));
}

/// Adds a finished trial under the next number.
inline void add_finished(History& history, Assignment parameters, std::vector<double> values,
                         Attributes system_attributes = {},
                         TrialState state = TrialState::Complete) {
  history.change([&](std::vector<TrialRecord>& trials) {
    TrialRecord trial;
    trial.number = static_cast<int>(trials.size());
    trial.state = state;
    trial.parameters = std::move(parameters);
    trial.values = std::move(values);
    trial.system_attributes = std::move(system_attributes);
    trials.push_back(std::move(trial));
  });
}

/// What a study does, without one: asks the sampler `count` times and records what the objective
/// says. Asks a sampler made anew for every trial when `is_forgetful`, as separate processes would.
inline void run_sampler(const std::string& text, const Space& space, History& history, int count,
                        std::uint64_t seed,
                        const std::function<std::vector<double>(const Assignment&)>& objective,
                        bool is_forgetful = false, bool is_declared = true) {
  auto sampler = make_sampler(text, seed, is_declared ? &space : nullptr);
  for (int i = 0; i < count; ++i) {
    if (is_forgetful) sampler = make_sampler(text, seed, is_declared ? &space : nullptr);
    Attributes attributes;
    Proposal proposal;
    proposal.seed = seed;
    proposal.number = static_cast<int>(history.trials().size());
    proposal.space = is_declared ? &space : nullptr;
    proposal.system_attributes = &attributes;
    const Assignment proposed = sampler->propose(history, proposal);
    Assignment point;
    for (const SpaceParameter& parameter : space) {
      if (!is_present(parameter, point)) continue;
      const Parameter* chosen = find_parameter(proposed, parameter.name);
      const double value =
          chosen != nullptr
              ? chosen->value
              : sampler->suggest(history, proposal, point, parameter.name, *parameter.distribution);
      point.push_back({parameter.name, parameter.distribution, value});
    }
    std::vector<double> values = objective(point);
    add_finished(history, std::move(point), std::move(values), std::move(attributes));
    sampler->told(history, history.trials().back());
  }
}

}  // namespace lathe::study
