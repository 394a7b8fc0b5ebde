#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "lathe/search/candidate_space.h"
#include "lathe/study/study.h"

namespace lathe::search {

/// What a candidate is known to have come to.
struct KnownResult {
  std::string from;                     ///< study and trial: "random 12"
  std::map<int, double> reports;        ///< by resource
  std::optional<double> accuracy = {};  ///< at the end; nothing where it was given up before
  study::Attributes attributes = {};    ///< parameters and the like
};

/// The results of all studies of a search, by candidate: the same model is never trained twice.
/// Threads may share it.
class KnownResults {
 public:
  explicit KnownResults(const CandidateSpace& space) : space_(space) {}

  /// Learns from a trial; one that came further than what was known replaces it.
  void add(const std::string& study, const study::TrialRecord& trial);
  std::optional<KnownResult> find(const Candidate& candidate) const;

 private:
  const CandidateSpace& space_;
  mutable std::mutex mutex_;
  std::map<std::string, KnownResult> results_;  // by the candidate's JSON
};

}  // namespace lathe::search
