#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/word_counts.h"

namespace lathe::data {

/// What a unigram vocabulary is learned by.
struct UnigramLearning {
  std::int64_t size = 8000;          ///< pieces
  std::int64_t least_count = 2;      ///< how often a piece must occur to begin with
  std::size_t most_characters = 16;  ///< of a piece
  std::size_t most_seeds = 400'000;  ///< pieces to begin with
};

/// A piece and its score, the logarithm of its probability.
using ScoredPiece = std::pair<std::string, double>;

/// Learns a unigram vocabulary (Kudo 2018): from all that occurs in the words, pieces are dropped
/// again and again of which the words' likelihood has the least, while expectation maximization
/// finds the probabilities of the others. `required` are kept whatever they are worth: every
/// character that words consist of must be among them.
///
/// Gives the required pieces and the best others, by falling score; at most `size`, fewer where the
/// words have no more. The same words give the same scores whatever the number of threads.
std::vector<ScoredPiece> learn_unigram(const std::vector<CountedWord>& words,
                                       const std::vector<std::string>& required,
                                       const UnigramLearning& learning, ThreadPool& pool,
                                       const ShouldStop& should_stop = {});

}  // namespace lathe::data
