#include "lathe/data/learn_unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "lathe/core/error.h"
#include "lathe/data/byte_trie.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

// SentencePiece's own constants.
constexpr double kShrink = 0.75;   // of the pieces stay in a round
constexpr int kStepsPerRound = 2;  // of expectation maximization
constexpr double kLeastExpected = 0.5;
// A round may leave so many more than are wanted: the last cut goes by score.
constexpr double kSpare = 1.1;
// Sums are made of as many parts whatever the number of threads, so that they are always the same.
constexpr std::size_t kParts = 16;

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == -std::numeric_limits<double>::infinity() ? a : a + std::log1p(std::exp(b - a));
}

// The derivative of the logarithm of the gamma function, by its asymptotic series.
double digamma(double x) {
  double result = 0;
  for (; x < 7; ++x) result -= 1 / x;
  x -= 0.5;
  const double y = 1 / (x * x);
  return result + std::log(x) +
         y * (1.0 / 24 - y * (7.0 / 960 - y * (31.0 / 8064 - y * (127.0 / 30720))));
}

std::vector<std::size_t> character_begins(const std::string& word) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < word.size(); ++i)
    if ((word[i] & 0xC0) != 0x80) begins.push_back(i);
  begins.push_back(word.size());
  return begins;
}

// Everything of two characters or more that occurs often enough, and how often. Longer ones are
// looked for only where what they begin with was found.
std::unordered_map<std::string, std::int64_t> frequent_pieces(const std::vector<CountedWord>& words,
                                                              const UnigramLearning& learning,
                                                              const ShouldStop& should_stop) {
  std::unordered_map<std::string, std::int64_t> found;
  std::vector<std::vector<std::size_t>> begins;
  for (const CountedWord& word : words) begins.push_back(character_begins(word.word));
  std::unordered_set<std::string> shorter;
  for (std::size_t length = 2; length <= learning.most_characters; ++length) {
    if (should_stop && should_stop()) throw Interrupted();
    std::unordered_map<std::string, std::int64_t> counts;
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::size_t at = 0; at + length < begins[i].size(); ++at) {
        const std::size_t begin = begins[i][at];
        const std::string piece = words[i].word.substr(begin, begins[i][at + length] - begin);
        const std::size_t last = begins[i][at + length - 1] - begin;
        if (length == 2 || shorter.contains(piece.substr(0, last))) counts[piece] += words[i].count;
      }
    shorter.clear();
    for (const auto& [piece, count] : counts)
      if (count >= learning.least_count) {
        found.emplace(piece, count);
        shorter.insert(piece);
      }
    if (shorter.empty()) break;
  }
  return found;
}

// The pieces of a round, with a trie to find them in words.
class UnigramRound {
 public:
  explicit UnigramRound(std::vector<ScoredPiece> pieces) : pieces_(std::move(pieces)) {
    std::vector<ByteTrie::Entry> entries;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      entries.emplace_back(pieces_[i].first, static_cast<std::int32_t>(i));
    trie_ = ByteTrie(std::move(entries));
  }

  const std::vector<ScoredPiece>& pieces() const { return pieces_; }

  // Adds to `expected` how often each piece occurs in a word, over all ways to cut it.
  void add_expected(const CountedWord& word, std::vector<double>& expected) const {
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    const std::string_view text = word.word;
    std::vector<double> forward(text.size() + 1, kNone), backward(text.size() + 1, kNone);
    forward[0] = 0;
    backward[text.size()] = 0;
    for (std::size_t at = 0; at < text.size(); ++at)
      if (forward[at] != kNone)
        trie_.find(text.substr(at), [&](std::size_t length, std::int32_t piece) {
          forward[at + length] = log_add(forward[at + length], forward[at] + score(piece));
        });
    const double all = forward[text.size()];
    if (all == kNone) return;
    for (std::size_t at = text.size(); at-- > 0;)
      if (forward[at] != kNone)
        trie_.find(text.substr(at), [&](std::size_t length, std::int32_t piece) {
          if (backward[at + length] == kNone) return;
          const double rest = backward[at + length] + score(piece);
          backward[at] = log_add(backward[at], rest);
          expected[static_cast<std::size_t>(piece)] +=
              static_cast<double>(word.count) * std::exp(forward[at] + rest - all);
        });
  }

  // Appends the pieces of the best cut of a text, without the piece `forbidden`.
  void append_best(std::string_view text, std::int32_t forbidden,
                   std::vector<std::int32_t>& cut) const {
    struct End {
      double score = -std::numeric_limits<double>::infinity();
      std::int32_t piece = -1;
      std::size_t begin = 0;
    };
    std::vector<End> ends(text.size() + 1);
    ends[0].score = 0;
    for (std::size_t at = 0; at < text.size(); ++at)
      if (at == 0 || ends[at].piece >= 0)
        trie_.find(text.substr(at), [&](std::size_t length, std::int32_t piece) {
          const double sum = ends[at].score + score(piece);
          End& end = ends[at + length];
          if (piece != forbidden && (end.piece < 0 || sum > end.score)) end = {sum, piece, at};
        });
    if (ends[text.size()].piece < 0) return;
    for (std::size_t end = text.size(); end > 0; end = ends[end].begin)
      cut.push_back(ends[end].piece);
  }

 private:
  double score(std::int32_t piece) const { return pieces_[static_cast<std::size_t>(piece)].second; }

  std::vector<ScoredPiece> pieces_;
  ByteTrie trie_;
};

class UnigramLearner {
 public:
  UnigramLearner(const std::vector<CountedWord>& words, const std::vector<std::string>& required,
                 const UnigramLearning& learning, ThreadPool& pool, const ShouldStop& should_stop)
      : words_(words),
        required_(required.begin(), required.end()),
        learning_(learning),
        pool_(pool),
        should_stop_(should_stop) {}

  std::vector<ScoredPiece> learn() {
    UnigramRound round(first_pieces());
    const auto wanted = static_cast<std::size_t>(kSpare * static_cast<double>(learning_.size));
    while (true) {
      for (int step = 0; step < kStepsPerRound; ++step) round = UnigramRound(maximized(round));
      if (round.pieces().size() <= std::max(wanted, required_.size())) break;
      std::vector<ScoredPiece> fewer = pruned(round, wanted);
      if (fewer.size() == round.pieces().size()) break;
      round = UnigramRound(std::move(fewer));
    }
    return finished(round);
  }

 private:
  // Calls `body(word, part)` for every word, each part of them on one thread.
  template <typename Body>
  void for_each_word(const Body& body) {
    pool_.run(static_cast<std::int64_t>(kParts), [&](std::int64_t part, int) {
      for (auto i = static_cast<std::size_t>(part); i < words_.size(); i += kParts) {
        if (i % 1024 < kParts && should_stop_ && should_stop_()) throw Interrupted();
        body(words_[i], static_cast<std::size_t>(part));
      }
    });
  }

  std::vector<ScoredPiece> first_pieces() {
    std::unordered_map<std::string, std::int64_t> counts;
    for (const CountedWord& word : words_) {
      const std::vector<std::size_t> begins = character_begins(word.word);
      for (std::size_t i = 0; i + 1 < begins.size(); ++i)
        counts[word.word.substr(begins[i], begins[i + 1] - begins[i])] += word.count;
    }
    std::vector<std::pair<double, std::string>> others;
    for (auto& [piece, count] : frequent_pieces(words_, learning_, should_stop_)) {
      const auto length = static_cast<double>(character_begins(piece).size() - 1);
      if (!required_.contains(piece))
        others.emplace_back(static_cast<double>(count) * length, piece);
    }
    std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (others.size() > learning_.most_seeds) others.resize(learning_.most_seeds);
    std::vector<ScoredPiece> pieces;
    for (const std::string& piece : required_)
      pieces.emplace_back(piece, std::max<double>(static_cast<double>(counts[piece]), 1));
    for (const auto& [weight, piece] : others) pieces.emplace_back(piece, weight);
    std::sort(pieces.begin(), pieces.end());
    double sum = 0;
    for (const auto& [piece, weight] : pieces) sum += weight;
    for (auto& [piece, weight] : pieces) weight = std::log(weight / sum);
    return pieces;
  }

  // The pieces with the scores that one step gives them; those that hardly occur are gone.
  std::vector<ScoredPiece> maximized(const UnigramRound& round) {
    const std::size_t size = round.pieces().size();
    std::vector<std::vector<double>> parts(kParts, std::vector<double>(size));
    for_each_word(
        [&](const CountedWord& word, std::size_t part) { round.add_expected(word, parts[part]); });
    std::vector<ScoredPiece> kept;
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double expected = 0;
      for (const std::vector<double>& part : parts) expected += part[i];
      const std::string& piece = round.pieces()[i].first;
      const bool is_required = required_.contains(piece);
      if (expected < kLeastExpected && !is_required) continue;
      expected = std::max(expected, kLeastExpected);
      kept.emplace_back(piece, expected);
      sum += expected;
    }
    const double all = digamma(sum);
    for (auto& [piece, score] : kept) score = digamma(score) - all;
    return kept;
  }

  // Three quarters of the pieces, or as many as are wanted: what the best cuts of words lose least
  // without is dropped.
  std::vector<ScoredPiece> pruned(const UnigramRound& round, std::size_t wanted) {
    const std::vector<ScoredPiece>& pieces = round.pieces();
    std::vector<std::vector<std::int64_t>> parts(kParts, std::vector<std::int64_t>(pieces.size()));
    for_each_word([&](const CountedWord& word, std::size_t part) {
      std::vector<std::int32_t> cut;
      round.append_best(word.word, -1, cut);
      for (const std::int32_t piece : cut)
        parts[part][static_cast<std::size_t>(piece)] += word.count;
    });
    std::vector<std::int64_t> counts(pieces.size());
    for (const auto& part : parts)
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += part[i];
    double sum = 0;
    for (const std::int64_t count : counts) sum += static_cast<double>(count);

    std::vector<std::pair<double, std::size_t>> losses;
    std::vector<bool> is_kept(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (required_.contains(pieces[i].first)) {
        is_kept[i] = true;
      } else if (counts[i] > 0) {
        losses.emplace_back(loss_without(round, i, counts, sum), i);
      }
    }
    std::sort(losses.begin(), losses.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    const auto target =
        std::max(wanted, static_cast<std::size_t>(kShrink * static_cast<double>(pieces.size())));
    const std::size_t room = target > required_.size() ? target - required_.size() : 0;
    for (std::size_t i = 0; i < std::min(room, losses.size()); ++i)
      is_kept[losses[i].second] = true;
    std::vector<ScoredPiece> kept;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (is_kept[i]) kept.push_back(pieces[i]);
    return kept;
  }

  // By how much the likelihood falls where a piece is cut into its second best parts.
  static double loss_without(const UnigramRound& round, std::size_t piece,
                             const std::vector<std::int64_t>& counts, double sum) {
    std::vector<std::int32_t> parts;
    round.append_best(round.pieces()[piece].first, static_cast<std::int32_t>(piece), parts);
    const auto count = static_cast<double>(counts[piece]);
    if (parts.empty()) return std::numeric_limits<double>::infinity();
    const double log_sum = std::log(sum);
    // Its parts are then as many more, and so are all pieces.
    const double log_new_sum = std::log(sum + count * (static_cast<double>(parts.size()) - 1));
    double parts_score = 0;
    for (const std::int32_t part : parts)
      parts_score += std::log(static_cast<double>(counts[static_cast<std::size_t>(part)]) + count) -
                     log_new_sum;
    return count / sum * (std::log(count) - log_sum - parts_score);
  }

  std::vector<ScoredPiece> finished(const UnigramRound& round) {
    std::vector<ScoredPiece> result, others;
    for (const ScoredPiece& piece : round.pieces())
      (required_.contains(piece.first) ? result : others).push_back(piece);
    const auto by_score = [](const ScoredPiece& a, const ScoredPiece& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    };
    std::sort(others.begin(), others.end(), by_score);
    const auto size = static_cast<std::size_t>(learning_.size);
    others.resize(std::min(others.size(), size > result.size() ? size - result.size() : 0));
    result.insert(result.end(), others.begin(), others.end());
    std::sort(result.begin(), result.end(), by_score);
    return result;
  }

  const std::vector<CountedWord>& words_;
  std::unordered_set<std::string> required_;
  UnigramLearning learning_;
  ThreadPool& pool_;
  const ShouldStop& should_stop_;
};

}  // namespace

std::vector<ScoredPiece> learn_unigram(const std::vector<CountedWord>& words,
                                       const std::vector<std::string>& required,
                                       const UnigramLearning& learning, ThreadPool& pool,
                                       const ShouldStop& should_stop) {
  return UnigramLearner(words, required, learning, pool, should_stop).learn();
}

}  // namespace lathe::data
