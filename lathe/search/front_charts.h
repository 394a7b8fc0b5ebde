#pragma once

#include <string>
#include <vector>

#include "lathe/search/front_comparison.h"

/// Pictures of what a front has against one format for all layers, each an SVG document.
namespace lathe::search {

/// Every finalist by its cost, mixed or alike, those of the front ringed, and what the front has
/// within each cost.
std::string finalists_chart(const SearchResult& result);

/// A row for each uniform format: what it has, what the front has at no more cost, and what mixed
/// formats have.
std::string rivals_chart(const std::vector<UniformRival>& rivals, const std::string& cost);

}  // namespace lathe::search
