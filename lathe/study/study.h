#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/study/history.h"
#include "lathe/study/pruner.h"
#include "lathe/study/sampler.h"
#include "lathe/study/storage.h"

namespace lathe::study {

class Study;

/// A trial in work: asks for parameters, reports on the way. Belongs to its Study.
class Trial {
 public:
  int number() const { return record_.number; }
  const TrialRecord& record() const { return record_; }
  const Owner& owner() const { return owner_; }

  /// The value of a parameter, in internal form; the same name gives the same value again. Fails
  /// when the study knows the parameter as something else.
  double suggest(const std::string& name, const Distribution& distribution);
  double suggest_float(const std::string& name, double low, double high, bool log = false,
                       std::optional<double> step = {});
  std::int64_t suggest_int(const std::string& name, std::int64_t low, std::int64_t high,
                           bool log = false, std::int64_t step = 1);
  Choice suggest_categorical(const std::string& name, std::vector<Choice> choices);
  /// Every parameter of the space whose condition holds, in order.
  void suggest(const Space& space);

  /// An intermediate result. Further objectives go into `others` (multi-objective pruning).
  void report(int step, double value, const std::vector<double>& others = {});
  /// What the study's pruner says after the last report.
  Verdict verdict();
  void set_user_attribute(const std::string& key, std::string json);
  /// Writes what is pending and renews the lease. False when the trial is no longer ours: stop.
  [[nodiscard]] bool flush();

 private:
  friend class Study;
  Trial(Study& study, TrialRecord record, Owner owner);

  Study* study_;
  TrialRecord record_;
  Owner owner_;
  Assignment proposed_;  // by the sampler, together
  Assignment fixed_;     // enqueued by the user
  bool has_proposed_ = false;
  TrialChange pending_;  // suggested or reported, not yet written
};

/// How a trial ended.
struct Outcome {
  TrialState state = TrialState::Complete;
  std::vector<double> values = {};
  std::string reason = {};  ///< why it failed, kept as the user attribute `fail_reason`
};

struct StudyOptions {
  std::string sampler = "auto";
  std::string pruner = "none";
  std::optional<std::uint64_t> seed = {};  ///< nothing: the study's own, or a random one
  std::optional<Space> space = {};
  std::chrono::milliseconds lease{0};
  std::optional<int> max_trials = {};  ///< of the whole study
  std::function<bool(const Assignment&)> is_allowed = {};
};

/// When `optimize` stops; whichever comes first.
struct StopRule {
  std::optional<int> trials = {};  ///< finished in the whole study
  std::optional<std::chrono::duration<double>> time = {};
  std::optional<double> target = {};   ///< first objective reaches it
  std::optional<int> stagnation = {};  ///< so many trials without a better one
  ShouldStop should_stop = {};
};

/// A search: proposes points, learns from results, keeps everything in a storage.
class Study {
 public:
  /// Creates a study in the storage, or opens the one of that name. Sampler, pruner, seed and space
  /// are kept in it, so another process continues with the same.
  static Study create(std::shared_ptr<Storage> storage, const std::string& name,
                      const std::vector<Direction>& directions, StudyOptions options = {});
  static Study open(std::shared_ptr<Storage> storage, const std::string& name,
                    StudyOptions options = {});

  /// The next trial to evaluate; nothing when the budget is used up or the sampler is exhausted.
  /// With a declared space its parameters are chosen and stored at once.
  std::optional<Trial> ask();
  /// Records how the trial ended. Values that are not finite make it FAIL, with the reason. False
  /// when the trial is no longer ours: somebody else's result counts.
  [[nodiscard]] bool tell(Trial& trial, Outcome outcome);
  /// The same for a trial known by number only; fails when it is finished.
  void tell(int number, Outcome outcome, const Owner& owner = {});
  /// Asks for these parameters next; the others are sampled.
  void enqueue(const std::vector<std::pair<std::string, Choice>>& parameters,
               bool skip_if_exists = false);
  void add(TrialRecord trial);

  /// Asks, runs and tells until the rule says stop. The objective returns an outcome; a UserError
  /// it throws fails that trial and goes on. After each trial the callbacks run.
  using Objective = std::function<Outcome(Trial&)>;
  using Callback = std::function<void(Study&, const TrialRecord&)>;
  void optimize(const Objective& objective, const StopRule& rule,
                const std::vector<Callback>& callbacks = {});

  const StudyRecord& record() const { return record_; }
  /// Brought up to date with the storage.
  const History& history();
  /// The complete trial with the best first objective, infeasible ones left out; nothing if none.
  std::optional<TrialRecord> best();
  Storage& storage() { return *storage_; }
  const std::optional<Space>& space() const { return options_.space; }

 private:
  friend class Trial;
  Study(std::shared_ptr<Storage> storage, StudyRecord record, StudyOptions options);

  // Shared: several studies may live in one storage.
  std::shared_ptr<Storage> storage_;
  StudyRecord record_;
  StudyOptions options_;
  History history_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pruner> pruner_;
};

}  // namespace lathe::study
