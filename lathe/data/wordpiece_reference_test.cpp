// The tokenizer against its definition: the steps of the reference, one after the other, each over
// the whole text, as slowly and as plainly as they can be written.
#include <gtest/gtest.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <map>

#include "lathe/data/counter_random.h"
#include "lathe/data/normalizers/normalizer.h"
#include "lathe/data/unicode_classes.h"
#include "lathe/data/utf8.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

using Text = std::u32string;

Text decode(std::string_view bytes) {
  Text text;
  for (const char *next = bytes.data(), *end = next + bytes.size(); next != end;)
    text += next_code_point(next, end);
  return text;
}

std::string encode_utf8(const Text& text) {
  std::string bytes;
  for (const char32_t c : text) append_utf8(c, bytes);
  return bytes;
}

icu::UnicodeString to_icu(const Text& text) {
  return icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(text.data()),
                                       static_cast<std::int32_t>(text.size()));
}

Text from_icu(const icu::UnicodeString& text) {
  std::string bytes;
  text.toUTF8String(bytes);
  return decode(bytes);
}

bool is_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}

Text clean(const Text& text) {
  Text result;
  for (const char32_t c : text) {
    const auto type = u_charType(static_cast<UChar32>(c));
    if (c == '\t' || c == '\n' || c == '\r') {
      result += U' ';
    } else if (c != 0 && c != 0xFFFD &&
               (!is_as_old_as(8, c) ||
                (type != U_CONTROL_CHAR && type != U_FORMAT_CHAR && type != U_PRIVATE_USE_CHAR))) {
      result += is_space(c) ? U' ' : c;
    }
  }
  return result;
}

Text space_out_chinese(const Text& text) {
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  Text result;
  for (const char32_t c : text) {
    bool chinese = false;
    for (const auto& [first, last] : kRanges) chinese |= c >= first && c <= last;
    if (chinese) result += U' ';
    result += c;
    if (chinese) result += U' ';
  }
  return result;
}

Text strip_accents(const Text& text) {
  const nlohmann::json form = {{"type", "NFD"}};
  NormalizedText decomposed{.text = encode_utf8(text)};
  make_normalizer(&form)->normalize(decomposed);
  Text result;
  for (const char32_t c : decode(decomposed.text))
    if (!is_nonspacing_mark(c)) result += c;
  return result;
}

Text lowercase(const Text& text) {
  Text result;
  for (const char32_t c : text) result += from_icu(to_icu({c}).toLower(icu::Locale::getRoot()));
  return result;
}

std::vector<Text> words_of(const Text& text) {
  std::vector<Text> words(1);
  for (const char32_t c : text) {
    if (is_space(c) || is_punctuation(c)) words.emplace_back();
    if (is_space(c)) continue;
    words.back() += c;
    if (is_punctuation(c)) words.emplace_back();
  }
  std::erase(words, Text());
  return words;
}

std::vector<std::int32_t> pieces_of(const Text& word, const std::vector<std::string>& vocabulary) {
  static const std::map<std::string, std::int32_t> ids = [&] {
    std::map<std::string, std::int32_t> by_token;
    for (const std::string& token : vocabulary)
      by_token.emplace(token, static_cast<std::int32_t>(by_token.size()));
    return by_token;
  }();
  if (word.size() > 100) return {1};
  std::vector<std::int32_t> pieces;
  for (std::size_t start = 0; start < word.size();) {
    std::size_t length = word.size() - start;
    for (; length > 0; --length) {
      const auto found =
          ids.find((start > 0 ? "##" : "") + encode_utf8(word.substr(start, length)));
      if (found == ids.end()) continue;
      pieces.push_back(found->second);
      break;
    }
    if (length == 0) return {1};
    start += length;
  }
  return pieces;
}

// Single characters of many scripts, also as continuations, so that few words are unknown and a
// wrong character shows.
std::vector<std::string> make_vocabulary() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "ab", "##ab", "abc"};
  for (char32_t c = 0x21; c < 0x30000; c += c < 0x3100 ? 1 : 7) {
    if (c >= 0xD800 && c < 0xE000) continue;
    tokens.push_back(encode_utf8({c}));
    tokens.push_back("##" + tokens.back());
  }
  return tokens;
}

std::string random_text(CounterRandom& random) {
  // Characters that the steps treat specially come up as often as all others together.
  static const Text kSpecial =
      U" \t\n\v\u0085\u00A0\u2028\u200B\u00AD\uFFFDaAbBc.,;!-$\u0301\u0327\u034F\u0345\u302E"
      U"\u302F\u1B44\u1BAA\U0001D165\U0001D15E\u0130\u03A3\u1E9E\u037E\u226E\u1FEE\uAC01\u4E2D"
      U"\uF900\U0002F800\u212A\u2000\u0958\u09CB\u0378\uE000";
  std::string text;
  const std::uint64_t length = random.below(40);
  for (std::uint64_t i = 0; i < length; ++i) {
    switch (random.below(8)) {
      case 0:
        append_utf8(static_cast<char32_t>(random.below(0x30000)), text);  // surrogates are broken
        break;
      case 1:
        append_utf8(static_cast<char32_t>(random.below(0x3000)), text);
        break;
      case 2:
        text += static_cast<char>(random.below(256));
        break;
      case 3:
        append_utf8(static_cast<char32_t>(random.below(128)), text);
        break;
      default:
        append_utf8(kSpecial[random.below(kSpecial.size())], text);
    }
  }
  return text;
}

class AgainstItsDefinition : public testing::TestWithParam<NormalizerOptions> {};

TEST_P(AgainstItsDefinition, GivesTheSameIdsOnRandomTexts) {
  const std::vector<std::string> vocabulary = make_vocabulary();
  WordpieceTokenizer::Options options;
  options.normalizer = GetParam();
  const auto tokenizer = WordpieceTokenizer::from_vocabulary(vocabulary, options);
  CounterRandom random(2024);
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = random_text(random);
    Text text = decode(bytes);
    if (options.normalizer.clean_text) text = clean(text);
    if (options.normalizer.isolate_chinese_characters) text = space_out_chinese(text);
    if (options.normalizer.strip_accents) text = strip_accents(text);
    if (options.normalizer.lowercase) text = lowercase(text);
    std::vector<std::int32_t> expected = {2};
    for (const Text& word : words_of(text))
      for (const std::int32_t id : pieces_of(word, vocabulary)) expected.push_back(id);
    expected.push_back(3);
    ASSERT_EQ(tokenizer.encode(bytes), expected) << "round " << round << ": " << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(
    WordpieceTokenizer, AgainstItsDefinition,
    testing::Values(NormalizerOptions{}, NormalizerOptions{.clean_text = false},
                    NormalizerOptions{.strip_accents = false},
                    NormalizerOptions{.isolate_chinese_characters = false, .lowercase = false},
                    NormalizerOptions{.strip_accents = false, .lowercase = false}));

}  // namespace
}  // namespace lathe::data
