#include "lathe/data/folds.h"

#include <charconv>
#include <map>

#include "lathe/core/error.h"
#include "lathe/data/counter_random.h"

namespace lathe::data {
namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (text.empty() || error != std::errc{} || end != last) return std::nullopt;
  return number;
}

}  // namespace

std::optional<FoldedData> parse_folds(std::string_view spec) {
  const std::size_t at = spec.rfind('@');
  if (at == spec.npos) return std::nullopt;
  const std::size_t slash = spec.find('/', at);
  if (slash == spec.npos) return std::nullopt;
  const std::optional<std::int64_t> fold = whole_number(spec.substr(at + 1, slash - at - 1));
  const std::optional<std::int64_t> count = whole_number(spec.substr(slash + 1));
  if (!fold || !count) return std::nullopt;
  if (*count < 2 || *fold < 1 || *fold > *count)
    fail("{}: there is no fold {} of {}: expected {}", spec, *fold, *count,
         *count < 2 ? "two folds or more" : fmt::format("1 to {}", *count));
  return FoldedData{std::string(spec.substr(0, at)), *fold, *count};
}

std::vector<std::int64_t> assign_folds(std::span<const std::int32_t> labels, std::int64_t count) {
  if (static_cast<std::int64_t>(labels.size()) < count)
    fail("{} examples cannot be cut into {} folds", labels.size(), count);
  std::map<std::int32_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < labels.size(); ++i) members[labels[i]].push_back(i);
  std::vector<std::int64_t> folds(labels.size());
  std::int64_t next = 0;  // goes on from label to label, so that folds are as large as each other
  for (auto& [label, positions] : members) {
    CounterRandom(0, static_cast<std::uint64_t>(label)).shuffle(std::span(positions));
    for (const std::size_t position : positions) folds[position] = next++ % count + 1;
  }
  return folds;
}

}  // namespace lathe::data
