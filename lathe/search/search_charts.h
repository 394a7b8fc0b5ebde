#pragma once

#include <string>
#include <vector>

#include "lathe/search/search_flow.h"

/// The charts of a search's report, each an SVG document.
namespace lathe::search {

/// The best result so far, of each sampler or of families alone; whole, or near the best.
std::string best_chart(const SearchResult& result, const SearchOptions& options, bool of_families,
                       bool is_zoomed);
/// What every trial came to.
std::string trials_chart(const SearchResult& result, const SearchOptions& options);
/// Accuracy against a cost: every complete trial, and those that no other beats in both.
std::string front_chart(const SearchResult& result, const char* cost, const std::string& label);
/// Trials uncompressed, compressed, and compressed and trained.
std::string curves_chart(const SearchResult& result);
/// Values one after another, from 1.
std::string longer_chart(const std::vector<double>& values, const char* title, const char* x,
                         const std::string& y);
/// How many layers have each family of formats for their weights.
std::string families_chart(const Candidate& candidate);
/// The bits of each layer's weights, scales left out, with their format.
std::string formats_chart(const Candidate& candidate);

}  // namespace lathe::search
