#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/search/search_flow.h"
#include "lathe/search/search_studies.h"

/// What trials of a search came to, as its report wants it.
namespace lathe::search {

/// What a trial came to, as far as it was trained: the accuracy, less the cost of its bits.
std::optional<double> score_of(const study::TrialRecord& trial);
/// A number that trials have as an attribute.
std::optional<double> number_of(const study::TrialRecord& trial, std::string_view name);

/// Whether a study tried one family of formats alone.
bool is_of_family(const SearchResult::Study& study);

/// The best result so far after each trial; no number before the first that has one.
std::vector<double> best_so_far(const study::History& history);

/// The three curves of models that are compressed on the way: attributes, and what they are called.
inline constexpr std::array kCurves{std::pair(kUncompressed, "uncompressed"),
                                    std::pair(kCompressed, "compressed"),
                                    std::pair("accuracy", "compressed and trained")};
/// What complete trials have of a curve, by number.
std::vector<double> curve_of(const SearchResult& result, const char* attribute);

}  // namespace lathe::search
