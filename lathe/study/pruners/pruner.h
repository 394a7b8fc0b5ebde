#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/history.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// What to do with a trial after a report.
enum class Verdict {
  Continue,
  Prune,
  Pause,  ///< give it back to the queue with its checkpoint; it may be promoted later
};

/// Judges running trials by their reports.
class Pruner {
 public:
  virtual ~Pruner() = default;
  /// `trial` holds its reports so far. The pruner may set system attributes that it wants
  /// remembered with the trial (`completed_rung_0`).
  virtual Verdict judge(const History& history, const TrialRecord& trial,
                        Attributes& system_attributes) = 0;
  /// The number of a paused trial (it waits, and `lathe:paused` is `true`) that deserves to go on.
  /// Asked before a new trial is started.
  virtual std::optional<int> promote(const History& /*history*/) { return {}; }
};

/// A kind of pruner, registered by its own file.
struct PrunerKind {
  std::string name;
  std::string summary;
  std::vector<KindOption> options;
  std::unique_ptr<Pruner> (*make)(const Options& options);
};

/// Makes a pruner from `name` or `name:key=value,...`.
std::unique_ptr<Pruner> make_pruner(std::string_view text);

}  // namespace lathe::study
