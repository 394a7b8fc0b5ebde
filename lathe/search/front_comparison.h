#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/report/table.h"
#include "lathe/search/search_flow.h"

namespace lathe::search {

/// A format that all layers have, and what a front has against it.
struct UniformRival {
  const Finalist* uniform = nullptr;
  /// The best of mixed formats that costs no more, chosen by the rows that were held out and never
  /// by tests; none where all cost more.
  const Finalist* mixed = nullptr;

  /// Tests of what was trained on all of train, or accuracies of the rows held out where nothing
  /// was: by how much the mixed one is better.
  std::optional<double> gain() const;
};

/// The uniform formats of a search for a front, the cheapest first; none where it has none.
std::vector<UniformRival> compare_with_uniform(const SearchResult& result);

/// A row for each of them.
report::Table front_table(const std::vector<UniformRival>& rivals, const std::string& cost);
/// How many of them the front is above, and how far it is below any.
std::string front_summary(const std::vector<UniformRival>& rivals);

}  // namespace lathe::search
