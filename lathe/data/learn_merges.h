#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lathe/core/interrupt.h"

namespace lathe::data {

/// A word as symbols, and how often it occurs.
struct SymbolWord {
  std::vector<std::int32_t> symbols;
  std::int64_t count = 0;
};

/// A pair of symbols that becomes a new one.
using SymbolPair = std::pair<std::int32_t, std::int32_t>;

/// Learns byte-pair merges (Sennrich et al. 2016): the pair of neighbours that occurs most often
/// becomes a symbol of its own, again and again, while a pair occurs `least_count` times. Of pairs
/// that occur equally often the one with the lower left, then right symbol comes first, so that
/// nothing depends on the order of the words.
///
/// `symbol_of` says which symbol a pair becomes, which may be there already by another way to spell
/// it; nothing ends the learning before that merge.
std::vector<SymbolPair> learn_merges(
    std::vector<SymbolWord> words, std::int64_t least_count,
    const std::function<std::optional<std::int32_t>(const SymbolPair&)>& symbol_of,
    const ShouldStop& should_stop = {});

}  // namespace lathe::data
