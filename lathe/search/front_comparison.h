#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/report/table.h"
#include "lathe/search/search_flow.h"

namespace lathe::search {

/// A format that all layers have, and what a front has against it at no more cost. Both are chosen
/// by losses of the rows that were held out (finalist_front.h) and never by tests.
struct UniformRival {
  const Finalist* uniform = nullptr;
  /// What the front has: the format itself where it is on it, and otherwise the best of all.
  const Finalist* front = nullptr;
  /// The best of mixed formats; none where all cost more.
  const Finalist* mixed = nullptr;

  /// Tests of what was trained on all of train, or accuracies of the rows held out where nothing
  /// was: by how much another one is better; none where there is no other.
  std::optional<double> gain_of(const Finalist* other) const;
};

/// The uniform formats of a search for a front, the cheapest first; none where it has none.
std::vector<UniformRival> compare_with_uniform(const SearchResult& result);

/// A row for each of them.
report::Table front_table(const std::vector<UniformRival>& rivals, const std::string& cost);
/// How many of them the front is above, through how many it goes, and how far it is below any; the
/// same of mixed formats alone.
std::string front_summary(const std::vector<UniformRival>& rivals);

/// What all layers of a candidate have.
struct UniformFormats {
  std::string weights, data;
};
UniformFormats uniform_formats(const Candidate& candidate);
/// The same in words; data is told where it has a format of its own.
std::string uniform_text(const Candidate& candidate);

}  // namespace lathe::search
