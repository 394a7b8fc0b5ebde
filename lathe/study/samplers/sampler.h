#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/study/history.h"

namespace lathe::study {

/// Values by parameter name, in internal form, with what they were chosen from.
using Assignment = std::vector<Parameter>;

/// A parameter of a space that is declared before the trial.
struct SpaceParameter {
  std::string name;
  DistributionPtr distribution;
  /// The parameter exists only where `parent` has one of `parent_values` (internal form); an empty
  /// parent: always. A parent stands before its children.
  std::string parent = {};
  std::vector<double> parent_values = {};
};
/// All parameters that a trial may have, if known; samplers work without it too.
using Space = std::vector<SpaceParameter>;

/// The trial that a sampler is asked about.
struct Proposal {
  std::uint64_t seed = 0;  ///< of the study
  int number = 0;          ///< of the trial
  /// Counts up while proposals for this trial are turned down (`is_allowed`).
  int attempt = 0;
  const Space* space = nullptr;  ///< nullptr when the objective decides as it goes
  /// Turns down points that are known to be useless before they are tried (a cost model); empty:
  /// all are allowed. Gets the parameters known so far.
  std::function<bool(const Assignment&)> is_allowed = {};
  /// What the sampler wants remembered with the trial (Optuna reads some: `grid_id`, ...).
  Attributes* system_attributes = nullptr;
};

/// Proposes parameters for trials and learns from their results.
///
/// Our own samplers are functions of (study seed, trial number, parameter, history): another
/// process asked the same question gives the same answer. The `optuna-N` presets draw from one
/// running generator as Optuna does, and so repeat themselves only within a process.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Parameters chosen together before the trial starts; may be empty or partial. Those that the
  /// trial then asks for are taken from here when the distribution is the same.
  virtual Assignment propose(const History& history, const Proposal& proposal) = 0;
  /// One parameter that `propose` did not choose. `so_far` is what the trial has already.
  virtual double suggest(const History& history, const Proposal& proposal, const Assignment& so_far,
                         std::string_view name, const Distribution& distribution) = 0;
  /// Called after each result of this process's own trials.
  virtual void told(const History& /*history*/, const TrialRecord& /*trial*/) {}
  /// True when nothing is left to propose (a grid was walked through).
  virtual bool is_exhausted(const History& /*history*/) { return false; }
};

/// Options of a sampler or pruner as `key = value` text, from `tpe:gamma=0.2,candidates=48`.
using Options = std::map<std::string, std::string, std::less<>>;

/// One of them that a kind of sampler or pruner knows, for help and errors.
struct KindOption {
  std::string name;
  std::string help;  ///< what it says, its values and its default
};

/// A kind of sampler, registered by its own file.
struct SamplerKind {
  std::string name;     ///< `tpe`
  std::string summary;  ///< one line for help
  std::vector<KindOption> options;
  std::unique_ptr<Sampler> (*make)(const Options& options, std::uint64_t seed, const Space* space);
};

/// Makes a sampler from `name` or `name:key=value,...`; fails on an unknown name with the nearest.
std::unique_ptr<Sampler> make_sampler(std::string_view text, std::uint64_t seed,
                                      const Space* space = nullptr);

}  // namespace lathe::study
