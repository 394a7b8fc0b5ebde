#include "lathe/data/learn_merges.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace lathe::data {
namespace {

using Key = std::uint64_t;

Key key_of(std::int32_t left, std::int32_t right) {
  return static_cast<Key>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

struct KeyHash {
  std::size_t operator()(Key key) const {
    key *= 0x9E3779B97F4A7C15;
    return key ^ key >> 32;
  }
};

struct Pair {
  std::int64_t count = 0;
  std::vector<std::int32_t> words = {};  // where it occurs, or did once
  std::int64_t grown = -1;               // the last merge by which it came to occur more often
};

// What a pair counted when it was put into the heap. It is looked at again when its turn comes.
struct Candidate {
  std::int64_t count;
  Key key;
  // The heap gives the greatest first: the most frequent, then the lowest key.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : key > other.key;
  }
};

class Learner {
 public:
  explicit Learner(std::vector<SymbolWord> words) : words_(std::move(words)) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const SymbolWord& word = words_[i];
      for (std::size_t at = 0; at + 1 < word.symbols.size(); ++at)
        add_place(key_of(word.symbols[at], word.symbols[at + 1]), word.count,
                  static_cast<std::int32_t>(i));
    }
    for (const auto& [key, pair] : pairs_) candidates_.push({pair.count, key});
  }

  /// The most frequent pair, if it occurs often enough.
  std::optional<SymbolPair> best(std::int64_t least_count) {
    while (!candidates_.empty()) {
      const Candidate top = candidates_.top();
      const std::int64_t count = pairs_.at(top.key).count;
      if (count == top.count) {
        if (count < least_count) return std::nullopt;
        return SymbolPair{static_cast<std::int32_t>(top.key >> 32),
                          static_cast<std::int32_t>(top.key & 0xFFFFFFFF)};
      }
      // It has lost occurrences to others since.
      candidates_.pop();
      if (count > 0) candidates_.push({count, top.key});
    }
    return std::nullopt;
  }

  /// Merges the best pair wherever it stands. Only pairs with the symbol it makes come to occur
  /// more often by that, and only of them must the heap be told.
  void merge(const SymbolPair& pair, std::int32_t symbol) {
    candidates_.pop();
    const std::vector<std::int32_t> places =
        std::move(pairs_.at(key_of(pair.first, pair.second)).words);
    std::vector<Key> grown;
    for (const std::int32_t place : places) merge_in(place, pair, symbol, grown);
    for (const Key key : grown) candidates_.push({pairs_.at(key).count, key});
    ++num_merges_;
  }

 private:
  Pair& add_place(Key key, std::int64_t count, std::int32_t word) {
    Pair& pair = pairs_[key];
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    pair.count += count;
    return pair;
  }

  // Only pairs that touch a merged place change.
  void merge_in(std::int32_t place, const SymbolPair& pair, std::int32_t symbol,
                std::vector<Key>& grown) {
    SymbolWord& word = words_[static_cast<std::size_t>(place)];
    std::vector<std::int32_t>& symbols = word.symbols;
    merged_.clear();
    std::size_t kept = 0;
    std::size_t next_pair = 0;  // those before it are seen to
    for (std::size_t at = 0; at < symbols.size();) {
      const bool is_pair =
          at + 1 < symbols.size() && SymbolPair{symbols[at], symbols[at + 1]} == pair;
      if (!is_pair) {
        symbols[kept++] = symbols[at++];
        continue;
      }
      next_pair = std::max(next_pair, at == 0 ? 0 : at - 1);
      for (; next_pair <= at + 1 && next_pair + 1 < symbols.size(); ++next_pair)
        pairs_.at(key_of(symbols[next_pair], symbols[next_pair + 1])).count -= word.count;
      merged_.push_back(kept);
      symbols[kept++] = symbol;
      at += 2;
    }
    symbols.resize(kept);
    next_pair = 0;
    for (const std::size_t at : merged_) {
      next_pair = std::max(next_pair, at == 0 ? 0 : at - 1);
      for (; next_pair <= at && next_pair + 1 < symbols.size(); ++next_pair)
        grow(key_of(symbols[next_pair], symbols[next_pair + 1]), word.count, place, grown);
    }
  }

  void grow(Key key, std::int64_t count, std::int32_t place, std::vector<Key>& grown) {
    Pair& pair = add_place(key, count, place);
    if (pair.grown == num_merges_) return;
    pair.grown = num_merges_;
    grown.push_back(key);
  }

  std::vector<SymbolWord> words_;
  std::unordered_map<Key, Pair, KeyHash> pairs_;
  std::priority_queue<Candidate> candidates_;
  std::int64_t num_merges_ = 0;
  std::vector<std::size_t> merged_;  // where the new symbol stands in a word
};

}  // namespace

std::vector<SymbolPair> learn_merges(
    std::vector<SymbolWord> words, std::int64_t least_count,
    const std::function<std::optional<std::int32_t>(const SymbolPair&)>& symbol_of,
    const ShouldStop& should_stop) {
  Learner learner(std::move(words));
  std::vector<SymbolPair> merges;
  while (const std::optional<SymbolPair> pair = learner.best(least_count)) {
    if (should_stop && should_stop()) throw Interrupted();
    const std::optional<std::int32_t> symbol = symbol_of(*pair);
    if (!symbol) break;
    learner.merge(*pair, *symbol);
    merges.push_back(*pair);
  }
  return merges;
}

}  // namespace lathe::data
