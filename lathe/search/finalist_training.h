#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/search/finalists.h"
#include "lathe/search/search_directory.h"
#include "lathe/search/train_candidate.h"

namespace lathe::search {

/// How a training went: accuracies by epoch, losses by step.
struct LearningCurve {
  std::vector<double> accuracies = {}, losses = {};
};

/// Trains a search's finalists again, which chooses one of them, and says what the choice is worth.
/// What is done is kept in the directory and not done again.
class FinalistTraining {
 public:
  /// `builder` makes the models where the options name none; `rungs` are those of the trials.
  FinalistTraining(const SearchOptions& options, const std::string& builder, const Rungs& rungs,
                   const TrialData& data, SearchDirectory& directory,
                   const engine::ExecutionOptions& execution,
                   const experiment::Callbacks& callbacks)
      : options_(options),
        builder_(builder),
        rungs_(rungs),
        data_(data),
        directory_(directory),
        execution_(execution),
        callbacks_(callbacks) {}

  /// Trains each with seeds that the studies have not seen, for what was best by luck is not so
  /// again, and puts the one of the best mean first, before those that no study found. One that
  /// cannot be trained, because its numbers overflow perhaps, is taken out; fails where none is
  /// left.
  void train_again(std::vector<Finalist>& finalists);

  /// Writes the chosen one's model to `best`, that of the seed which did best on the rows that were
  /// held out, and tests it where the options and the data let it.
  std::optional<double> test(const Finalist& chosen);

  /// Trains the chosen one with other epochs: whether it goes on learning or learns by heart.
  LearningCurve train_longer(const Finalist& chosen);

  /// Trains on all rows and tests. Held-out rows have said all they can by now: the chosen one may
  /// learn from them as well, and where there is a front or something to compare with, all that are
  /// left but those that cannot be trained; fails where that is the chosen one.
  void train_on_all(std::vector<Finalist>& finalists);

  /// Those that were taken out, each with the reason.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Run {
    std::size_t finalist = 0;
    int seed = 0;
    std::string error = {};
  };
  using Train = std::function<void(const Run& run, const engine::ExecutionOptions& execution,
                                   const experiment::Callbacks& callbacks)>;
  void train_side_by_side(std::vector<Run>& runs, const char* activity, const Train& train);
  void take_out(std::vector<Finalist>& finalists, const std::vector<Run>& runs);
  std::uint64_t seed_of(int index) const;
  std::string run_name(const Finalist& finalist, int seed) const;
  std::filesystem::path path_of(const Finalist& finalist, int seed) const;
  void train_again(Finalist& finalist, int seed, const engine::ExecutionOptions& execution,
                   const experiment::Callbacks& callbacks);

  const SearchOptions& options_;
  const std::string& builder_;
  const Rungs rungs_;
  const TrialData& data_;
  SearchDirectory& directory_;
  const engine::ExecutionOptions& execution_;
  const experiment::Callbacks& callbacks_;
  std::vector<std::string> left_out_ = {};
};

}  // namespace lathe::search
