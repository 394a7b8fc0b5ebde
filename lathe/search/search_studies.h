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

/// The point to try as a study's trial of that number; nothing leaves it to the sampler.
using ProposePoint =
    std::function<std::optional<std::vector<std::pair<std::string, study::Choice>>>(
        const std::string& study, int number)>;

/// Studies beside those of samplers, whose points are listed: a narrowed grid, and every format for
/// all layers alike.
inline constexpr const char* kNarrowed = "narrowed";
inline constexpr const char* kUniform = "uniform";
/// What finalists have in place of a study whose formats are there to compare with alone.
inline constexpr const char* kBeside = "beside";
/// A study's name as part of a file's: `tpe:gamma=0.3` has characters that some file systems
/// refuse.
std::string study_file_name(std::string study);
/// The study of one family of formats alone.
std::string family_study(const std::string& family);
bool is_listed(const std::string& study);

/// Attributes of trials that are compressed on the way: accuracies of the same model without, and
/// compressed but not trained after.
inline constexpr const char* kUncompressed = "uncompressed";
inline constexpr const char* kCompressed = "compressed";

/// A trial that ended, and how far its study is.
struct EndedTrial {
  std::string study;
  study::TrialRecord trial = {};
  int num_finished = 0;
  std::optional<double> best = {};  ///< of the study so far
};

/// The search of that name as its studies remember it, for workers elsewhere; fails where the
/// storage has none.
SearchOptions read_stored_search(const std::string& storage, const std::string& study);

/// The studies of a search, one for each sampler, in one storage.
class SearchStudies {
 public:
  /// `is_allowed` turns down points that can be built but are not wanted; it may be empty.
  SearchStudies(const SearchOptions& options, const CandidateSpace& space,
                std::function<bool(const study::Assignment&)> is_allowed = {});

  /// Works on studies one after another, several trials at once where the options say so, until
  /// each has its trials; what was begun before is taken up. `ended` hears of every trial; calls
  /// come one after another.
  void run(const std::vector<std::string>& samplers, int trials, const EvaluateTrial& evaluate,
           const ProposePoint& propose, const engine::ExecutionOptions& execution,
           const experiment::Callbacks& callbacks,
           const std::function<void(const EndedTrial&)>& ended);

  /// Trials of a study.
  struct Record {
    std::string sampler;
    study::History history;
  };
  std::vector<Record> read() const;
  /// The same of the studies of listed points that there are.
  std::vector<Record> read_listed() const;
  KnownResults& known() { return known_; }

 private:
  std::shared_ptr<study::Storage> open() const;
  study::Study open_study(const std::string& sampler) const;
  std::string study_name(const std::string& sampler) const;

  const SearchOptions& options_;
  const CandidateSpace& space_;
  std::function<bool(const study::Assignment&)> is_allowed_;
  KnownResults known_;
};

}  // namespace lathe::search
