#include "lathe/hardware/mapping/parallelism.h"

#include <charconv>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

constexpr std::int64_t kFewElements = 64;

int lanes_of(std::string_view text, std::string_view whole) {
  int lanes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), lanes);
  if (error != std::errc{} || end != text.data() + text.size() || lanes < 1)
    fail("\"{}\": expected LAYER=INxOUT, such as layers.0=4x8", whole);
  return lanes;
}

}  // namespace

void add_parallelism(Parallelism& parallelism, std::string_view text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t cross = equals == std::string_view::npos ? equals : text.find('x', equals);
  if (cross == std::string_view::npos || equals == 0)
    fail("\"{}\": expected LAYER=INxOUT, such as layers.0=4x8", text);
  const Lanes lanes{.in = lanes_of(text.substr(equals + 1, cross - equals - 1), text),
                    .out = lanes_of(text.substr(cross + 1), text)};
  if (!parallelism.emplace(text.substr(0, equals), lanes).second)
    fail("\"{}\": layer \"{}\" was given before", text, text.substr(0, equals));
}

std::string to_text(const Parallelism& parallelism, std::string_view separator) {
  std::string result;
  for (const auto& [layer, lanes] : parallelism)
    result +=
        fmt::format("{}{}={}x{}", result.empty() ? "" : separator, layer, lanes.in, lanes.out);
  return result;
}

std::vector<int> lane_choices(std::int64_t size) {
  std::vector<int> result;
  std::int64_t fewest = size + 1;
  for (std::int64_t lanes = 1; lanes <= size; ++lanes) {
    const std::int64_t beats = (size + lanes - 1) / lanes;
    const bool is_round = size % lanes == 0 || (lanes & (lanes - 1)) == 0;
    if (beats >= fewest || (size > kFewElements && !is_round)) continue;
    fewest = beats;
    result.push_back(static_cast<int>(lanes));
  }
  return result;
}

}  // namespace lathe::hardware
