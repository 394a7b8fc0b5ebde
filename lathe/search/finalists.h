#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/compress/average_bits.h"
#include "lathe/search/candidate_costs.h"
#include "lathe/search/candidate_space.h"
#include "lathe/search/search_options.h"

namespace lathe::search {

double mean(const std::vector<double>& values);

/// A trial among the best, and how it did when it was trained again.
struct Finalist {
  std::string sampler;  ///< whose study found it
  int trial = 0;
  /// In the study: accuracy and loss. One that stands there to compare with has none.
  std::optional<double> found = {}, found_loss = {};
  double cost = 0;  ///< of its bits, in accuracy
  Candidate candidate = {};
  std::int64_t parameters = 0;
  compress::AverageBits bits = {};
  /// By seed, of the rows that trials are judged by: accuracies and mean cross-entropies.
  std::vector<double> accuracies = {}, losses = {};
  Costs costs = {};         ///< that follow from sizes and formats
  bool is_uniform = false;  ///< every layer has the same format: there to compare with
  std::vector<double> whole_accuracies = {};  ///< tests of it trained on all of train, by seed

  double mean() const;
  double mean_loss() const;
};

/// Those of a search's complete trials that are trained again, the best first and each candidate
/// once: as many as the options say, one of each part of a front, and all of one format for every
/// layer where they were asked for, at whose costs parts of a front end. The best of a front's part
/// is that of the least loss, which luck moves less than accuracies.
std::vector<Finalist> choose_finalists(std::vector<Finalist> trials, const SearchOptions& options);

}  // namespace lathe::search
