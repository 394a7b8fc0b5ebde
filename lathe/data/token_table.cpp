#include "lathe/data/token_table.h"

#include <algorithm>
#include <bit>

#include "lathe/core/error.h"

namespace lathe::data {

TokenTable::TokenTable(std::size_t num_tokens) {
  // At most half full, and never full: a search ends at an empty slot.
  const std::size_t num_slots = std::bit_ceil(std::max<std::size_t>(2 * num_tokens, 2));
  slots_.resize(num_slots);
  mask_ = num_slots - 1;
  shift_ = 64 - std::countr_zero(num_slots);
}

void TokenTable::insert(std::string_view text, std::int32_t id) {
  check(id >= 0, "a token id that is not negative");
  std::string padded(text);
  padded.resize(text.size() + kPadding);
  const std::uint64_t first = first_bytes(padded.data(), text.size());
  std::size_t slot = hash(padded.data(), text.size(), first) >> shift_;
  for (; slots_[slot].id != kAbsent; slot = (slot + 1) & mask_) {
    if (!holds(slots_[slot], padded.data(), text.size(), first)) continue;
    slots_[slot].id = id;
    return;
  }
  check(++num_tokens_ <= slots_.size() / 2, "no more tokens than the table was made for");
  const auto rest = static_cast<std::uint32_t>(bytes_.size());
  if (text.size() > 8) bytes_ += text.substr(8);
  slots_[slot] = {first, static_cast<std::uint32_t>(text.size()), id, rest};
  longest_ = std::max(longest_, text.size());
}

}  // namespace lathe::data
