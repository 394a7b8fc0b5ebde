// Words and pieces of a vocabulary that is being learned.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/word_counts.h"

namespace lathe::data {

/// Counts what `count_in` finds in each text, on all threads.
template <typename CountIn>
std::vector<CountedWord> count_words(std::span<const std::string_view> texts, ThreadPool& pool,
                                     const ShouldStop& should_stop, const CountIn& count_in) {
  constexpr std::size_t kTextsPerTask = 64;
  std::vector<WordCounts> counts(static_cast<std::size_t>(pool.num_threads()));
  const std::size_t num_tasks = (texts.size() + kTextsPerTask - 1) / kTextsPerTask;
  pool.run(static_cast<std::int64_t>(num_tasks), [&](std::int64_t task, int thread) {
    if (should_stop && should_stop()) throw Interrupted();
    const std::size_t begin = static_cast<std::size_t>(task) * kTextsPerTask;
    for (const std::string_view text :
         texts.subspan(begin, std::min(kTextsPerTask, texts.size() - begin)))
      count_in(text, counts[static_cast<std::size_t>(thread)]);
  });
  for (std::size_t i = 1; i < counts.size(); ++i) counts[0].add(counts[i]);
  return counts[0].sorted();
}

/// A vocabulary under construction: the special tokens, then what each symbol of the merges is
/// written as.
class TrainingPieces {
 public:
  TrainingPieces(std::vector<std::string> special, std::int64_t size)
      : tokens_(std::move(special)), size_(size) {
    for (const std::string& token : tokens_) ids_.emplace(token, ids_.size());
  }

  /// The symbol that is written so; a new one where there is room.
  std::optional<std::int32_t> find_or_add(const std::string& text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    if (static_cast<std::int64_t>(tokens_.size()) >= size_) return std::nullopt;
    ids_.emplace(text, static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(text);
    return static_cast<std::int32_t>(tokens_.size()) - 1;
  }
  /// Adds one of the pieces that a vocabulary must have; `what` they are, for messages.
  std::int32_t add_base(const std::string& text, const char* what) {
    const std::optional<std::int32_t> symbol = find_or_add(text);
    if (!symbol) fail("size {}: there is no room for {}", size_, what);
    return *symbol;
  }
  const std::string& operator[](std::int32_t symbol) const {
    return tokens_[static_cast<std::size_t>(symbol)];
  }
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::int64_t size_;
};

/// The characters of a word, each as UTF-8.
std::vector<std::string> characters_of(const std::string& word);

/// The characters that get a token, in order: the most frequent thousand.
std::vector<std::string> alphabet_of(const std::vector<CountedWord>& words);

}  // namespace lathe::data
