#include "lathe/data/word_counts.h"

#include <algorithm>
#include <functional>

namespace lathe::data {

void WordCounts::add(std::string_view word, std::int64_t count) {
  const std::uint64_t hash = std::hash<std::string_view>()(word);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.count == 0) {
      slot = {hash, count, bytes_.size(), word.size()};
      bytes_ += word;
      if (++num_words_ * 2 > slots_.size()) grow();
      return;
    }
    if (slot.hash == hash && word_of(slot) == word) {
      slot.count += count;
      return;
    }
  }
}

void WordCounts::add(const WordCounts& others) {
  for (const Slot& slot : others.slots_)
    if (slot.count > 0) add(others.word_of(slot), slot.count);
}

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> words;
  words.reserve(num_words_);
  for (const Slot& slot : slots_)
    if (slot.count > 0) words.push_back({std::string(word_of(slot)), slot.count});
  std::sort(words.begin(), words.end(),
            [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  return words;
}

void WordCounts::grow() {
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(2 * old.size(), {});
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.count == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].count > 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace lathe::data
