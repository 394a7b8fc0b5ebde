#include "lathe/compress/pruning/granularity.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

using Kind = Granularity::Kind;

constexpr std::array<std::pair<Kind, const char*>, 6> kNames{{{Kind::Element, "element"},
                                                              {Kind::Row, "row"},
                                                              {Kind::Column, "column"},
                                                              {Kind::Head, "head"},
                                                              {Kind::Neuron, "neuron"},
                                                              {Kind::Vocabulary, "vocabulary"}}};

// The numbers of "2:4" or "1x16"; nullopt where the text is not two numbers with this between them.
std::optional<std::pair<std::int64_t, std::int64_t>> two_numbers(std::string_view text,
                                                                 char between) {
  std::int64_t first = 0, second = 0;
  const char* const end = text.data() + text.size();
  const auto head = std::from_chars(text.data(), end, first);
  if (head.ec != std::errc() || head.ptr == end || *head.ptr != between) return std::nullopt;
  const auto tail = std::from_chars(head.ptr + 1, end, second);
  if (tail.ec != std::errc() || tail.ptr != end) return std::nullopt;
  return std::pair(first, second);
}

}  // namespace

Granularity parse_granularity(std::string_view text) {
  for (const auto& [kind, name] : kNames)
    if (text == name) return {.kind = kind};
  if (const auto numbers = two_numbers(text, ':')) {
    const auto [kept, of] = *numbers;
    if (kept < 1 || kept >= of)
      fail("granularity {}: expected N:M with 0 < N < M, N of M inputs are kept", text);
    return {.kind = Kind::SomeOfSeveral, .kept = kept, .of = of};
  }
  if (const auto numbers = two_numbers(text, 'x')) {
    const auto [rows, columns] = *numbers;
    if (rows < 1 || columns < 1)
      fail("granularity {}: expected ROWSxCOLUMNS, both 1 or more", text);
    return {.kind = Kind::Block, .rows = rows, .columns = columns};
  }
  std::vector<std::string> known;
  for (const auto& [kind, name] : kNames) known.emplace_back(name);
  known.insert(known.end(), {"2:4", "1x16"});
  throw unknown_name("granularity", text, known);
}

std::string to_text(const Granularity& granularity) {
  if (granularity.kind == Kind::SomeOfSeveral)
    return fmt::format("{}:{}", granularity.kept, granularity.of);
  if (granularity.kind == Kind::Block)
    return fmt::format("{}x{}", granularity.rows, granularity.columns);
  for (const auto& [kind, name] : kNames)
    if (granularity.kind == kind) return name;
  return {};
}

bool is_within_weights(const Granularity& granularity) {
  return granularity.kind != Kind::Head && granularity.kind != Kind::Neuron;
}

double largest_sparsity(const Granularity& granularity) {
  if (granularity.kind != Kind::SomeOfSeveral) return 1;
  return 1 - static_cast<double>(granularity.kept) / static_cast<double>(granularity.of);
}

}  // namespace lathe::compress
