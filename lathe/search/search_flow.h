#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/search/finalists.h"
#include "lathe/search/search_options.h"
#include "lathe/study/history.h"

namespace lathe::search {

/// What came of a search.
struct SearchResult {
  std::string measured_on;
  double chance_level = 0;
  bool is_precision = false;  ///< formats were searched, not architectures
  bool has_curves = false;    ///< trials were measured without compression and before training on
  std::string front = {};     ///< the cost that was made small as well
  struct Study {
    std::string sampler;
    study::History history;
  };
  std::vector<Study> studies = {};
  std::vector<Finalist> finalists = {};      ///< the one of the best mean first: it is chosen
  std::vector<std::string> left_out = {};    ///< those that could not be trained again, and why
  std::optional<double> test_accuracy = {};  ///< of the chosen model, where data has a split `test`
  /// The chosen one trained for longer: accuracies by epoch, losses by step.
  std::vector<double> longer_accuracies = {}, longer_losses = {};
  double seconds = 0;  ///< of this call
};

/// Searches. Without a model each trial builds one from a point of the space and trains it from
/// nothing, or from another one's weights, and where the space has formats or sparsities compresses
/// it on the way; of a model that is given each trial compresses the layers and trains it on. The
/// best are trained again with other seeds, and the best of those by the mean is chosen, written to
/// `out/best` and tested.
///
/// Of formats the damage that each does to each layer is measured first, and trials start from what
/// is best by that.
///
/// The directory remembers what is done; the same call goes on with it. With one job the same seed
/// gives the same trials and values.
SearchResult run_search(const SearchOptions& options, const engine::ExecutionOptions& execution,
                        const experiment::Callbacks& callbacks = {});

/// Works on the trials of a search in a storage that several processes share, until its studies
/// have theirs; what comes of it is the search's own to say. `change` may give its options other
/// paths; `out` gets what is kept meanwhile.
void work_on_search(const std::string& storage, const std::string& study,
                    const std::function<void(SearchOptions&)>& change,
                    const engine::ExecutionOptions& execution,
                    const experiment::Callbacks& callbacks = {});

/// Trains a trial's model again, from its parameters and the search's seed, and writes it to
/// `target`; without a trial it is the chosen model of the search. Gives its accuracy on the rows
/// of the search where it was trained.
struct ExportOptions {
  std::filesystem::path search = {};  ///< the search's directory
  std::string sampler = {};           ///< whose study; empty: the only one
  std::optional<int> trial = {};
  std::filesystem::path target = {};
  bool replaces = false;
};
std::optional<double> export_trial(const ExportOptions& options,
                                   const engine::ExecutionOptions& execution,
                                   const experiment::Callbacks& callbacks = {});

}  // namespace lathe::search
