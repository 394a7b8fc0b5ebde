#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lathe/report/table.h"
#include "lathe/search/search_flow.h"

namespace lathe::search {

/// How a study went, in numbers.
struct StudySummary {
  std::string sampler;
  int trials = 0, complete = 0, given_up = 0, failed = 0;
  int at_chance = 0;  ///< complete or given up with an accuracy that guessing has too
  int copied = 0;     ///< the same model had been trained before
  int best_trial = -1;
  /// Of the complete trials that are not at chance: accuracies, less the cost of bits.
  double best = 0, mean = 0, deviation = 0, least = 0;
  /// Of the best: average stored bits, and which share of its weights is rounded at all; where it
  /// has formats.
  std::optional<double> weight_bits = {}, data_bits = {}, rounded_weights = {};
};
StudySummary summarize(const SearchResult::Study& study);

/// The studies, a row each.
report::Table studies_table(const SearchResult& result);
/// The best trials and how they did when they were trained again.
report::Table finalists_table(const SearchResult& result);

/// Whether several of the best were trained on all of train and tested.
bool is_compared_on_test(const SearchResult& result);
/// Bits and test accuracies of those.
report::Table whole_table(const SearchResult& result);

/// Trials that were compressed on the way, a row for each of the three: best, mean and deviation of
/// the same trials uncompressed, compressed, and compressed and trained.
report::Table curves_table(const SearchResult& result);

/// The format of each layer's weights and of what it reads.
report::Table formats_table(const Candidate& candidate);

/// Writes report.html and its charts as SVG.
void write_report(const SearchResult& result, const SearchOptions& options,
                  const std::filesystem::path& directory);

}  // namespace lathe::search
