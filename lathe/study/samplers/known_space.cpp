#include "lathe/study/samplers/known_space.h"

#include <algorithm>
#include <utility>

namespace lathe::study {

void KnownSpace::update(const History& history) {
  for (; num_read_ < history.finished().size(); ++num_read_) {
    const TrialRecord& trial = history.trials()[history.finished()[num_read_]];
    if (trial.state == TrialState::Fail) continue;
    ++num_results_;
    for (int i = 0; i < static_cast<int>(trial.parameters.size()); ++i) {
      const Parameter& parameter = trial.parameters[i];
      const auto [place, is_new] = known_.try_emplace(parameter.name);
      Known& known = place->second;
      if (is_new) {
        known = {parameter.distribution, trial.number, trial.number, i};
      } else if (known.distribution != parameter.distribution &&
                 *known.distribution != *parameter.distribution) {
        known.is_constant = false;
      }
      if (trial.number > known.latest) {
        known.latest = trial.number;
        known.distribution = parameter.distribution;
      }
      if (std::pair(trial.number, i) < std::pair(known.first, known.position)) {
        known.first = trial.number;
        known.position = i;
      }
      ++known.num_times;
    }
  }
}

UnitSpace KnownSpace::shared() const {
  std::vector<UnitSpace::Coordinate> coordinates;
  for (const auto& [name, known] : known_) {
    if (!known.is_constant || known.num_times < num_results_) continue;
    if (is_single(*known.distribution)) continue;
    coordinates.push_back({name, known.distribution});
  }
  return UnitSpace(std::move(coordinates));
}

Space KnownSpace::all() const {
  std::vector<std::pair<std::string, Known>> ordered(known_.begin(), known_.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.first, a.second.position) <
           std::pair(b.second.first, b.second.position);
  });
  Space space;
  for (auto& [name, known] : ordered) space.push_back({name, known.distribution});
  return space;
}

UnitSpace joint_space(const Proposal& proposal, const KnownSpace& known) {
  if (proposal.space == nullptr) return known.shared();
  std::vector<UnitSpace::Coordinate> coordinates;
  for (const SpaceParameter& parameter : *proposal.space) {
    if (!parameter.parent.empty() || is_single(*parameter.distribution)) continue;
    coordinates.push_back({parameter.name, parameter.distribution});
  }
  return UnitSpace(std::move(coordinates));
}

Space full_space(const Proposal& proposal, const KnownSpace& known) {
  return proposal.space == nullptr ? known.all() : *proposal.space;
}

}  // namespace lathe::study
