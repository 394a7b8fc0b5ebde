#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lathe/study/history.h"
#include "lathe/study/pruners/pruner.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/study/stop_rule.h"
#include "lathe/study/storages/storage.h"
#include "lathe/study/study_options.h"

namespace lathe::study {

class Study;

/// A trial in work: asks for parameters, reports on the way. Belongs to its Study, which must stay
/// where it is meanwhile.
class Trial {
 public:
  int number() const { return record_.number; }
  /// What is known of the trial, pending changes included.
  const TrialRecord& record() const { return record_; }
  const Owner& owner() const { return owner_; }

  /// The value of a parameter, in internal form; the same name gives the same value again. Fails
  /// when the trial, the study's space or another trial has the parameter as something else.
  double suggest(const std::string& name, const Distribution& distribution);
  double suggest_float(const std::string& name, double low, double high, bool log = false,
                       std::optional<double> step = {});
  std::int64_t suggest_int(const std::string& name, std::int64_t low, std::int64_t high,
                           bool log = false, std::int64_t step = 1);
  Choice suggest_categorical(const std::string& name, std::vector<Choice> choices);
  /// Every parameter of the space whose condition holds, in order.
  void suggest(const Space& space);

  /// An intermediate result. Further objectives go into `others` (multi-objective pruning). The
  /// first report of a step stays.
  void report(int step, double value, const std::vector<double>& others = {});
  /// What the study's pruner says after the last report; Prune when the trial is no longer ours.
  /// Writes what is pending.
  Verdict verdict();
  void set_user_attribute(const std::string& key, std::string json);
  /// What must not be above zero for the trial to count as feasible.
  void set_constraints(const std::vector<double>& constraints);
  /// Writes what is pending and renews the lease. False when the trial is no longer ours: stop.
  [[nodiscard]] bool flush();

 private:
  friend class Study;
  Trial(Study& study, TrialRecord record, Owner owner);

  void read_fixed();
  void suggest_from(const Space& space);
  double add(const std::string& name, const DistributionPtr& distribution);
  double choose(const std::string& name, const Distribution& distribution);
  void propose();
  Proposal proposal();

  Study* study_;
  TrialRecord record_;
  Owner owner_;
  std::map<std::string, Choice, std::less<>> fixed_;  // enqueued by the user
  Assignment proposed_;                               // by the sampler, together
  std::size_t next_proposed_ = 0;                     // most are asked for in this order
  bool has_proposed_ = false;
  int attempt_ = 0;
  TrialChange pending_;  // suggested or reported, not yet written
};

/// How a trial ended.
struct Outcome {
  /// Complete, Pruned, Fail, or Waiting for a paused trial.
  TrialState state = TrialState::Complete;
  /// One per objective if complete; a pruned trial may leave them to its last report.
  std::vector<double> values = {};
  std::string reason = {};  ///< why it failed, kept as the user attribute `fail_reason`
};

/// A search: proposes points, learns from results, keeps everything in a storage.
class Study {
 public:
  /// Creates a study in the storage, or opens the one of that name. Sampler, pruner, seed and space
  /// are kept in it, so another process continues with the same. Whoever opens a study with other
  /// ones makes it keep those with the first ask; but a space stays.
  static Study create(std::shared_ptr<Storage> storage, const std::string& name,
                      const std::vector<Direction>& directions, StudyOptions options = {});
  static Study open(std::shared_ptr<Storage> storage, const std::string& name,
                    StudyOptions options = {});

  /// The next trial to evaluate; nothing when the budget is used up or the sampler is exhausted.
  /// With a declared space its parameters are chosen and stored at once.
  std::optional<Trial> ask();
  /// Records how the trial ended. Values that are not finite make it FAIL and `diverged`. False
  /// when the trial is no longer ours: somebody else's result counts.
  [[nodiscard]] bool tell(Trial& trial, Outcome outcome);
  /// The same for a trial known by number only; fails when it is finished.
  void tell(int number, Outcome outcome, const Owner& owner = {});
  /// Records an intermediate result, one value per objective, of a trial known by number only, and
  /// says what the pruner thinks; fails when the trial is finished or another's.
  Verdict report(int number, int step, const std::vector<double>& values, const Owner& owner = {});
  /// Gives an unfinished trial back to the queue with what it has, as when work is interrupted.
  void release(Trial& trial);
  /// Asks for these parameters next; the others are sampled. With `skip_if_exists`, not when a
  /// trial has just these. Whether it was enqueued.
  bool enqueue(const std::vector<std::pair<std::string, Choice>>& parameters,
               bool skip_if_exists = false);
  /// Queues each failed trial once more with the parameters it had, as a trial of its own that
  /// knows which one it repeats (`failed_trial`, as Optuna writes it). One that was repeated
  /// already is left alone. Returns how many.
  int retry_failed();
  /// Adds a trial from elsewhere.
  void add(TrialRecord trial);

  /// Asks, runs and tells until the rule says stop: `work` (work.h) with an objective that does not
  /// ask whether to stop. After each trial that was told the callbacks run.
  using Objective = std::function<Outcome(Trial&)>;
  using Callback = std::function<void(Study&, const TrialRecord&)>;
  void optimize(const Objective& objective, const StopRule& rule,
                const std::vector<Callback>& callbacks = {});
  /// Ends `optimize` and `work` after the present trial.
  void stop() { is_stopped_ = true; }

  const StudyRecord& record() const { return record_; }
  std::uint64_t seed() const { return *options_.seed; }
  /// Brought up to date with the storage.
  const History& history();
  /// The complete trial with the best first objective, infeasible ones left out; nothing if none.
  std::optional<TrialRecord> best();
  /// The feasible complete trials that none other beats in every objective, by number.
  std::vector<TrialRecord> best_trials();
  Storage& storage() { return *storage_; }
  /// What the trials may have, or nullptr when that is not declared.
  const Space* space() const { return space_.get(); }

 private:
  friend class Trial;
  friend class StudyWorker;  // what `work` is made of
  Study(std::shared_ptr<Storage> storage, StudyRecord record, StudyOptions options);

  void keep_options();
  void refresh();
  std::optional<TrialRecord> claim(const Owner& owner);
  bool choose_parameters(Trial& trial);
  void remember(int number, const TrialChange& change);
  void learn(int number);
  const TrialRecord& running_trial(int number);
  [[noreturn]] void refuse(int number);
  TrialChange settle(const TrialRecord& record, Outcome outcome) const;
  void require_values(const Outcome& outcome) const;
  const SpaceParameter* find_declared(std::string_view name) const;
  DistributionPtr shared_distribution(const std::string& name, const Distribution& distribution);

  // Shared: several studies may live in one storage.
  std::shared_ptr<Storage> storage_;
  StudyRecord record_;
  StudyOptions options_;                // complete: nothing is left open
  std::unique_ptr<const Space> space_;  // at an address that samplers may keep
  History history_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pruner> pruner_;
  Owner worker_;
  int num_claims_ = 0;
  bool is_stopped_ = false;
  // What the objective asked for, to share it between trials and to notice contradictions.
  std::unordered_map<std::string, DistributionPtr> distributions_;
  std::size_t num_read_ = 0;  // of history_.finished(), into distributions_
};

}  // namespace lathe::study
