#include "lathe/core/error.h"

#include <algorithm>
#include <numeric>

namespace lathe {
namespace {

// Edits between two names; swapping neighbours counts as one, since that is how people mistype.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

UserError UserError::at(std::string_view place) const {
  return UserError(fmt::format("{}: {}", place, message_), hint_);
}

InternalError::InternalError(std::string_view what, std::source_location where)
    : message_(fmt::format("{}:{}: expected {}", where.file_name(), where.line(), what)) {}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

UserError unknown_name(std::string_view kind, std::string_view name,
                       const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return UserError(fmt::format("unknown {} \"{}\"; known: {}", kind, name, fmt::join(known, ", ")),
                   nearest.empty() ? std::string{} : fmt::format("did you mean \"{}\"?", nearest));
}

}  // namespace lathe
