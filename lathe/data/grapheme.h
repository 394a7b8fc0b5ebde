#pragma once

#include <cstddef>
#include <string_view>

namespace lathe::data {

/// The length in bytes of the grapheme cluster, what a reader takes for one character, at the
/// beginning of `text`, which is UTF-8 and not empty: Unicode's rules (UAX 29) without the one for
/// Indic conjuncts (GB9c), which only joins clusters of six bytes or more into longer ones.
std::size_t grapheme_length(std::string_view text);

}  // namespace lathe::data
