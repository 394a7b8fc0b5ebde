#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/known_results.h"
#include "lathe/search/search_options.h"
#include "lathe/study/study.h"
#include "lathe/study/work.h"

namespace lathe::search {

/// How a trial's candidate is evaluated. `execution` is a share of the machine.
using EvaluateTrial = std::function<study::Outcome(const std::string& study, study::Trial& trial,
                                                   const engine::ExecutionOptions& execution,
                                                   const experiment::Callbacks& callbacks)>;

/// The studies of a search, one for each sampler, in one storage.
class SearchStudies {
 public:
  SearchStudies(const SearchOptions& options, const CandidateSpace& space, double chance_level);

  /// Works on the studies one after another, several trials at once where the options say so, until
  /// each has its trials; what was begun before is taken up. `ended` hears of every trial; calls
  /// come one after another.
  void run(const EvaluateTrial& evaluate, const engine::ExecutionOptions& execution,
           const experiment::Callbacks& callbacks,
           const std::function<void(const std::string& study, const study::WorkedTrial&)>& ended);

  /// Trials of a study.
  struct Record {
    std::string sampler;
    study::History history;
  };
  std::vector<Record> read() const;
  KnownResults& known() { return known_; }

 private:
  std::shared_ptr<study::Storage> open() const;
  study::Study open_study(const std::string& sampler) const;

  const SearchOptions& options_;
  const CandidateSpace& space_;
  double chance_level_;
  KnownResults known_;
};

}  // namespace lathe::search
