#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/compress/average_bits.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/search_options.h"
#include "lathe/study/history.h"

namespace lathe::search {

/// A trial among the best, and how it did when it was trained again.
struct Finalist {
  std::string sampler;  ///< whose study found it
  int trial = 0;
  double found = 0;  ///< accuracy in the study
  double cost = 0;   ///< of its bits, in accuracy
  Candidate candidate = {};
  std::int64_t parameters = 0;
  compress::AverageBits bits = {};
  std::vector<double> accuracies = {};  ///< by seed

  double mean() const;
};

/// What came of a search.
struct SearchResult {
  std::string measured_on;
  double chance_level = 0;
  bool is_precision = false;  ///< formats were searched, not architectures
  struct Study {
    std::string sampler;
    study::History history;
  };
  std::vector<Study> studies = {};
  std::vector<Finalist> finalists = {};      ///< the one of the best mean first: it is chosen
  std::optional<double> test_accuracy = {};  ///< of the chosen model, where data has a split `test`
  double seconds = 0;                        ///< of this call
};

/// Searches. Without a model each trial builds one from a point of the space and trains it from
/// nothing; of a model that is given each trial rounds the layers to formats and trains it on. The
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

}  // namespace lathe::search
