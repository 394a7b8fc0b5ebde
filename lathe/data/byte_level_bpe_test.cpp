// GPT-2's tokenizer as a whole: its cutter, bytes merged pair by pair, added tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lathe/core/testing/error_text.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/counter_random.h"
#include "lathe/data/decoders/decoder.h"
#include "lathe/data/pipeline_tokenizer.h"
#include "lathe/data/pre_tokenizers/byte_level.h"
#include "lathe/data/testing/gpt2_regex.h"
#include "lathe/data/testing/random_text.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/token_models/bpe_model.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using Merges = std::vector<std::pair<std::string, std::string>>;

// The 256 bytes in their order, then what the merges make, then "<|x|>".
Vocabulary vocabulary_of(const Merges& merges) {
  Vocabulary vocabulary;
  vocabulary.source = "vocab.json";
  for (int byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    vocabulary.tokens.push_back(write_in_byte_alphabet({&one, 1}));
  }
  for (const auto& [left, right] : merges)
    if (std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), left + right) ==
        vocabulary.tokens.end())
      vocabulary.tokens.push_back(left + right);
  vocabulary.tokens.emplace_back("<|x|>");
  return vocabulary;
}

PipelineTokenizer make(Vocabulary vocabulary, const Merges& merges,
                       const std::vector<AddedToken>& added, bool add_prefix_space = false) {
  PipelineTokenizer::Parts parts;
  parts.model =
      std::make_unique<BpeModel>(vocabulary.tokens, merges, BpeModel::Options{.reads_bytes = true});
  parts.pre_tokenizers.push_back(make_byte_level({{"add_prefix_space", add_prefix_space}}, false));
  parts.added_tokens = added;
  for (AddedToken& token : parts.added_tokens)
    token.id = static_cast<std::int32_t>(
        std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), token.content) -
        vocabulary.tokens.begin());
  parts.vocabulary = std::move(vocabulary);
  return PipelineTokenizer(std::move(parts));
}

PipelineTokenizer make(const Merges& merges, bool add_prefix_space = false) {
  return make(vocabulary_of(merges), merges, {{.content = "<|x|>"}}, add_prefix_space);
}

std::string tokens_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> tokens;
  for (const std::int32_t id : tokenizer.encode(text)) tokens.push_back(tokenizer.token(id));
  return fmt::format("{}", fmt::join(tokens, " "));
}

const Merges kMerges = {{"l", "l"}, {"h", "e"}, {"Ġ", "he"}, {"he", "ll"}, {"Ġhe", "ll"}};

TEST(ByteLevelBpe, MergesTheLowestRankFirst) {
  const PipelineTokenizer tokenizer = make(kMerges);
  EXPECT_EQ(tokens_of(tokenizer, "hello hell"), "hell o Ġhell");
  EXPECT_EQ(tokens_of(tokenizer, "lllll"), "ll ll l") << "the leftmost of equal ones first";
  EXPECT_EQ(tokens_of(tokenizer, "hé\n"), "h Ã © Ċ");
  EXPECT_EQ(tokens_of(tokenizer, ""), "");
  EXPECT_THAT(tokenizer.encode("A"), ElementsAre(65));
  EXPECT_EQ(tokenizer.num_special(), 0);
}

TEST(ByteLevelBpe, NeedsAllOfItsTokens) {
  EXPECT_EQ(
      error_text([] { make(kMerges).with_tokens({0}); }),
      "vocab.json: its tokens cannot be made fewer: only BERT's WordPiece can do without some");
}

TEST(ByteLevelBpe, MatchesAddedTokensInTheRawText) {
  const PipelineTokenizer tokenizer = make(kMerges);
  EXPECT_EQ(tokens_of(tokenizer, "he<|x|><|x|> he<|x|"), "he <|x|> <|x|> Ġhe < | x |");
}

TEST(ByteLevelBpe, PrefersTheLeftmostAndThenTheLongestAddedToken) {
  Vocabulary vocabulary = vocabulary_of({});
  for (const char* token : {"<|x|>y", "xx", "b<"}) vocabulary.tokens.emplace_back(token);
  const PipelineTokenizer tokenizer = make(vocabulary, {},
                                           {{.content = "<|x|>"},
                                            {.content = "<|x|>y"},
                                            {.content = "xx"},
                                            {.content = "b<", .normalized = true}});
  EXPECT_EQ(tokens_of(tokenizer, "xxx<|x|>y<|x|>"), "xx x <|x|>y <|x|>");
  EXPECT_EQ(tokens_of(tokenizer, "b<|x|>b<"), "b <|x|> b<")
      << "tokens that are matched in normalized text come second";
}

TEST(ByteLevelBpe, PutsASpaceInFrontOfEachFragmentWhenTold) {
  const PipelineTokenizer tokenizer = make(kMerges, true);
  EXPECT_EQ(tokens_of(tokenizer, "he<|x|>he"), "Ġhe <|x|> Ġhe");
  EXPECT_EQ(tokens_of(tokenizer, " he"), "Ġhe");
  EXPECT_EQ(tokens_of(tokenizer, ""), "");
}

TEST(ByteLevelBpe, ReadsBytesThatAreNotUtf8AsReplacementCharacters) {
  const PipelineTokenizer tokenizer = make({});
  EXPECT_EQ(tokenizer.encode("a\xFFz\xE2\x82"), tokenizer.encode("a\uFFFDz\uFFFD"));
}

TEST(ByteLevelBpe, TruncatesWithoutSpecialTokens) {
  const PipelineTokenizer tokenizer = make({});
  std::vector<std::int32_t> ids;
  tokenizer.encode("abcdef", ids, 4, Truncation::Head);
  EXPECT_THAT(ids, ElementsAre('a', 'b', 'c', 'd'));
  ids.clear();
  tokenizer.encode("abcdef", ids, 4, Truncation::HeadTail);
  EXPECT_THAT(ids, ElementsAre('a', 'd', 'e', 'f'));
  EXPECT_EQ(error_of([&] { tokenizer.encode("a", ids, 0); }),
            "max_length is 0, expected at least 1: a token");
}

// Time must not grow with the square of a word's length.
TEST(ByteLevelBpe, EncodesAWordOfAMillionBytes) {
  EXPECT_EQ(make({{"a", "a"}, {"aa", "aa"}}).encode(std::string(1'000'000, 'a')).size(), 250'000u);
}

TEST(ByteLevelBpe, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(error_of([] {
              make(vocabulary_of({}), {{"a", "b"}}, {});
            }),
            "merge 1: has no token \"ab\"");
  Vocabulary incomplete = vocabulary_of({});
  incomplete.tokens[65] = "another";
  EXPECT_EQ(error_of([&] { make(incomplete, {}, {}); }),
            "has no token for the byte 65, expected one for each of the 256");
}

// The definition, step by step: cut by the regular expression, write bytes as characters, and merge
// the pair of the lowest rank, the leftmost of equals, until none is left.
class SlowBpe {
 public:
  SlowBpe(const Vocabulary& vocabulary, const Merges& merges) {
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
      ids_[vocabulary.tokens[id]] = static_cast<std::int32_t>(id);
    for (std::size_t rank = 0; rank < merges.size(); ++rank) ranks_[merges[rank]] = rank;
  }
  std::vector<std::int32_t> encode(const std::string& text) const {
    std::vector<std::int32_t> ids;
    const std::size_t special = text.find("<|x|>");
    for (const std::string& piece : gpt2_regex_pieces(text.substr(0, special)))
      for (const std::string& token : merged(piece)) ids.push_back(ids_.at(token));
    if (special == text.npos) return ids;
    ids.push_back(ids_.at("<|x|>"));
    for (const std::int32_t id : encode(text.substr(special + 5))) ids.push_back(id);
    return ids;
  }

 private:
  std::vector<std::string> merged(const std::string& piece) const {
    std::vector<std::string> parts;
    for (const char byte : piece) parts.push_back(write_in_byte_alphabet({&byte, 1}));
    for (;;) {
      std::size_t best = ranks_.size(), at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (const auto found = ranks_.find({parts[i], parts[i + 1]});
            found != ranks_.end() && found->second < best) {
          best = found->second;
          at = i;
        }
      if (best == ranks_.size()) return parts;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }

  std::map<std::string, std::int32_t> ids_;
  std::map<std::pair<std::string, std::string>, std::size_t> ranks_;
};

// Merges as training makes them: again and again the pair that is most frequent in random texts.
Merges learn_merges(int count) {
  std::vector<std::vector<std::string>> words;
  for (std::uint64_t seed = 0; seed < 800; ++seed)
    for (const std::string& piece : gpt2_regex_pieces(random_text(1'000'000 + seed))) {
      words.emplace_back();
      for (const char byte : piece) words.back().push_back(write_in_byte_alphabet({&byte, 1}));
    }
  Merges merges;
  while (static_cast<int>(merges.size()) < count) {
    std::map<std::pair<std::string, std::string>, int> counts;
    for (const auto& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    if (counts.empty()) break;
    const auto best =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    merges.push_back(best->first);
    for (auto& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == best->first.first && word[i + 1] == best->first.second) {
          word[i] += word[i + 1];
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
  }
  return merges;
}

TEST(ByteLevelBpe, EqualsItsDefinitionOnRandomTexts) {
  const Merges learnt = learn_merges(250);
  ASSERT_EQ(learnt.size(), 250u);
  Merges shuffled =
      learnt;  // orders that no training gives: a whole token may then be out of reach
  CounterRandom(1).shuffle(std::span(shuffled));
  for (const Merges& merges : {learnt, shuffled}) {
    const PipelineTokenizer fast = make(merges);
    const SlowBpe slow(vocabulary_of(merges), merges);
    for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
      const std::string text = random_text(seed);
      ASSERT_EQ(fast.encode(text), slow.encode(text)) << "seed " << seed << ": " << text;
    }
  }
}

}  // namespace
}  // namespace lathe::data
