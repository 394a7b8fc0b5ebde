#include "lathe/compress/lora_options.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/number_setting.h"
#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

constexpr int kMaxRank = 65536;

}  // namespace

void check_lora_options(const LoraOptions& options) {
  if (options.rank < 1 || options.rank > kMaxRank)
    fail("rank={}: expected 1 to {}", options.rank, kMaxRank);
  if (!(options.alpha > 0)) fail("alpha={}: expected a number above 0", options.alpha);
  if (!(options.dropout >= 0 && options.dropout < 1))
    fail("dropout={}: expected 0 up to below 1", options.dropout);
  if (options.targets.empty()) fail("targets: expected a pattern of the linears to adapt");
}

LoraOptions parse_lora_options(std::string_view text) {
  LoraOptions options;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    const std::string_view key = text.substr(0, std::min(equals, text.find(',')));
    if (key != "rank" && key != "alpha" && key != "dropout" && key != "targets")
      throw unknown_name("setting", key, {"alpha", "dropout", "rank", "targets"});
    if (key.size() != equals) fail("{}: expected {}=VALUE", key, key);
    text.remove_prefix(equals + 1);
    const std::size_t end = key == "targets" ? text.size() : std::min(text.find(','), text.size());
    const std::string_view value = text.substr(0, end);
    if (key == "targets") {
      options.targets = {std::string(value)};
      if (value.empty()) options.targets.clear();
    } else if (key == "rank") {
      const double rank = number_setting(key, value);
      if (rank != std::floor(rank) || rank < 1 || rank > kMaxRank)
        fail("rank={}: expected a whole number from 1 to {}", value, kMaxRank);
      options.rank = static_cast<int>(rank);
    } else {
      (key == "alpha" ? options.alpha : options.dropout) = number_setting(key, value);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  check_lora_options(options);
  return options;
}

}  // namespace lathe::compress
