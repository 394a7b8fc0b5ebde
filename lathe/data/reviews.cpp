#include "lathe/data/reviews.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "lathe/core/error.h"
#include "lathe/data/counter_random.h"
#include "lathe/data/review_grammar.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

using review_grammar::Template;

constexpr std::size_t kFewestWords = 8;
constexpr std::size_t kMostWords = 78;  // 80 tokens with [CLS] and [SEP]
constexpr std::int64_t kMostReviews = 10'000'000;
constexpr std::int64_t kReviewsPerLook = 1024;  // a few milliseconds of work

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return words;
}

template <typename T>
const T& pick(CounterRandom& random, std::span<const T> choices) {
  return choices[random.below(choices.size())];
}

// Writes one review word by word.
class Writer {
 public:
  Writer(CounterRandom random, bool positive) : random_(random), positive_(positive) {}

  std::string review() {
    // Opinions often enough said straight that a bag of words learns something, and otherwise often
    // enough that it stays well below a reader; reviews_test.cpp measures both. Few of them, and
    // few distractions: order is then most of what there is to learn, and a small model learns it
    // in its first thousand steps. With one opinion more, three epochs are not enough.
    const std::uint64_t num_opinions = 1 + random_.below(2);
    for (std::uint64_t i = 0; i < num_opinions; ++i) {
      const std::uint64_t die = random_.below(100);
      add(die < 56   ? review_grammar::plain_opinions()
          : die < 82 ? review_grammar::negated_opinions()
                     : review_grammar::contrasts());
    }
    if (random_.below(3) == 0) add(review_grammar::distractions());
    const std::size_t num_needed = sentences_.size();
    const std::uint64_t num_fillers = random_.below(3);
    for (std::uint64_t i = 0; i < num_fillers || num_words_ < kFewestWords; ++i)
      add(review_grammar::fillers());
    while (num_words_ > kMostWords) {
      check(sentences_.size() > num_needed, "opinions and distractions to fit in a review");
      num_words_ -= sentences_.back().size();
      sentences_.pop_back();
    }
    random_.shuffle(std::span(sentences_));
    return joined();
  }

 private:
  using Sentence = std::vector<std::string_view>;

  void add(std::span<const Template> templates) {
    Sentence sentence;
    for (const std::string_view word : words_of(pick(random_, templates))) {
      const std::string_view written = fill(word);
      if (!written.empty()) sentence.push_back(written);
    }
    num_words_ += sentence.size();
    sentences_.push_back(std::move(sentence));
  }
  std::string_view fill(std::string_view word) {
    if (!word.starts_with('<')) return word;
    if (word == "<own>") return adjective(positive_);
    if (word == "<other>") return adjective(!positive_);
    if (word == "<any>") return adjective(random_.below(2) == 1);
    return pick(random_, review_grammar::slot_words(word));
  }
  std::string_view adjective(bool positive) {
    return pick(random_, positive ? review_grammar::positive_adjectives()
                                  : review_grammar::negative_adjectives());
  }
  std::string joined() const {
    std::string text;
    for (const Sentence& sentence : sentences_)
      for (const std::string_view word : sentence) {
        if (!text.empty() && word != "." && word != ",") text += ' ';
        text += word;
      }
    return text;
  }

  CounterRandom random_;
  bool positive_;
  std::vector<Sentence> sentences_;
  std::size_t num_words_ = 0;
};

std::int64_t parse_number(std::string_view key, std::string_view text, std::int64_t least,
                          std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    fail("{} is \"{}\", expected a number from {} to {}", key, text, least, most);
  return value;
}

}  // namespace

ReviewOptions parse_review_options(std::string_view spec) {
  ReviewOptions options;
  const std::size_t colon = spec.find(':');
  if (colon == std::string_view::npos) return options;
  return with_place(spec, [&] {
    std::string_view rest = spec.substr(colon + 1);
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos)
        fail("option \"{}\" has no value, expected NAME=NUMBER", part);
      const std::string_view key = part.substr(0, equals);
      const std::string_view value = part.substr(equals + 1);
      if (key == "train") {
        options.num_train = parse_number(key, value, 1, kMostReviews);
      } else if (key == "test") {
        options.num_test = parse_number(key, value, 1, kMostReviews);
      } else if (key == "validation") {
        options.num_validation = parse_number(key, value, 1, kMostReviews);
      } else if (key == "seed") {
        options.seed = static_cast<std::uint64_t>(parse_number(key, value, 0, INT64_MAX));
      } else {
        throw unknown_name("option", key, {"seed", "test", "train", "validation"});
      }
    }
    return options;
  });
}

Dataset make_reviews(const ReviewOptions& options, std::string_view split,
                     const ShouldStop& should_stop) {
  struct Split {
    std::string_view name;
    std::int64_t count;
  };
  const Split splits[] = {{"train", options.num_train},
                          {"test", options.num_test},
                          {"validation", options.num_validation}};
  for (std::uint64_t stream = 0; stream < std::size(splits); ++stream) {
    if (splits[stream].name != split) continue;
    Dataset dataset;
    dataset.label_names = {"negative", "positive"};
    for (std::int64_t i = 0; i < splits[stream].count; ++i) {
      if (i % kReviewsPerLook == 0 && should_stop && should_stop()) throw Interrupted();
      // Reviews come in pairs of opposite labels, so that any even number of them is balanced.
      const auto pair = static_cast<std::uint64_t>(i / 2);
      const bool first_positive = CounterRandom(options.seed, stream + 16, pair).below(2) == 1;
      const bool positive = first_positive != (i % 2 == 1);
      Writer writer(CounterRandom(options.seed, stream, static_cast<std::uint64_t>(i)), positive);
      dataset.examples.push_back({writer.review(), positive ? 1 : 0});
    }
    return dataset;
  }
  throw unknown_name("split of reviews", split, {"train", "test", "validation"});
}

std::vector<std::string> reviews_vocabulary() {
  std::set<std::string_view> words;
  for (const auto templates :
       {review_grammar::plain_opinions(), review_grammar::negated_opinions(),
        review_grammar::contrasts(), review_grammar::distractions(), review_grammar::fillers()})
    for (const Template& sentence : templates)
      for (const std::string_view word : words_of(sentence))
        if (!word.starts_with('<')) words.insert(word);
  for (const std::string_view slot : review_grammar::slots())
    for (const std::string_view word : review_grammar::slot_words(slot))
      if (!word.empty()) words.insert(word);
  for (const std::string_view word : review_grammar::positive_adjectives()) words.insert(word);
  for (const std::string_view word : review_grammar::negative_adjectives()) words.insert(word);

  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  tokens.insert(tokens.end(), words.begin(), words.end());
  return tokens;
}

std::shared_ptr<const Tokenizer> reviews_tokenizer() {
  return std::make_shared<const WordpieceTokenizer>(
      WordpieceTokenizer::from_vocabulary(reviews_vocabulary()));
}

}  // namespace lathe::data
