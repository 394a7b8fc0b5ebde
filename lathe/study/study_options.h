#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lathe/study/samplers/sampler.h"
#include "lathe/study/trial_record.h"

namespace lathe::study {

/// What is not given comes from the study, or is the default of a new one.
struct StudyOptions {
  std::optional<std::string> sampler = {};  ///< of a new study: `auto`
  std::optional<std::string> pruner = {};   ///< of a new study: `none`
  std::optional<std::uint64_t> seed = {};   ///< of a new study: a random one
  std::optional<Space> space = {};          ///< of a new study: the objective decides as it goes
  /// What the objectives are called, one for each; empty: as the study has it, or nothing.
  std::vector<std::string> objectives = {};
  /// A result of the first objective that is not better is marked `collapsed`.
  std::optional<double> chance_level = {};
  std::chrono::milliseconds lease{0};
  std::optional<int> max_trials = {};  ///< of the whole study
  /// Turns down points before they are tried; see Proposal.
  std::function<bool(const Assignment&)> is_allowed = {};
};

/// Completes what was not given with what the study keeps, else with what a new one has. Fails
/// where the study keeps something damaged or another space.
void complete(StudyOptions& options, const StudyRecord& record);

/// The system attributes by which another process gets the same options, without those that the
/// study has already. The options are complete.
Attributes attributes_to_keep(const StudyOptions& options, const StudyRecord& record);

}  // namespace lathe::study
