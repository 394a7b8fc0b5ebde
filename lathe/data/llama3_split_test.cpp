#include "lathe/data/llama3_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unicode/regex.h>

#include <memory>
#include <string>
#include <vector>

#include "lathe/data/testing/random_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

std::vector<std::string> pieces_of(std::string_view text, int most_digits = 3) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t length = llama3_piece_length(text, most_digits);
    pieces.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

TEST(Llama3Split, KeepsOneCharacterWithTheLettersThatFollow) {
  EXPECT_THAT(pieces_of("A (fine) film\tindeed"),
              ElementsAre("A", " (", "fine", ")", " film", "\tindeed"));
  EXPECT_THAT(pieces_of("(fine)"), ElementsAre("(fine", ")"));
  EXPECT_THAT(pieces_of("\nfine"), ElementsAre("\n", "fine")) << "the end of a line is none";
}

TEST(Llama3Split, CutsNumbersByThreeOrOneByOne) {
  EXPECT_THAT(pieces_of("a 12345"), ElementsAre("a", " ", "123", "45"));
  EXPECT_THAT(pieces_of("12½", 1), ElementsAre("1", "2", "½"));
}

TEST(Llama3Split, CutsContractionsInAnyCase) {
  EXPECT_THAT(pieces_of("it's WE'LL x'\u017F"),
              ElementsAre("it", "'s", " WE", "'LL", " x", "'\u017F"));
  EXPECT_THAT(pieces_of("'sky '"), ElementsAre("'s", "ky", " '"));
}

TEST(Llama3Split, EndsLinesBehindOtherCharactersAndWhiteSpace) {
  EXPECT_THAT(pieces_of("};\r\n\n  x"), ElementsAre("};\r\n\n", " ", " x"));
  EXPECT_THAT(pieces_of("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(pieces_of("end  "), ElementsAre("end", "  "));
}

// With \s written out: ICU's leaves out U+000B and U+0085.
std::unique_ptr<icu::RegexPattern> compiled(std::string expression) {
  for (const auto& [from, to] : {std::pair{"\\s", "\\p{White_Space}"}, {"\\S", "\\P{White_Space}"}})
    for (std::size_t at = 0; (at = expression.find(from, at)) != expression.npos;)
      expression.replace(at, 2, to);
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::RegexPattern> pattern(
      icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(expression), 0, status));
  EXPECT_TRUE(U_SUCCESS(status));
  return pattern;
}

std::vector<std::string> regex_pieces(const icu::RegexPattern& pattern, const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString wide = icu::UnicodeString::fromUTF8(text);
  const std::unique_ptr<icu::RegexMatcher> matcher(pattern.matcher(wide, status));
  std::vector<std::string> pieces;
  while (matcher->find()) {
    pieces.emplace_back();
    matcher->group(status).toUTF8String(pieces.back());
  }
  return pieces;
}

TEST(Llama3Split, EqualsItsRegularExpressionsOnRandomTexts) {
  const auto llama3 = compiled(std::string(kLlama3Expression));
  const auto qwen2 = compiled(std::string(kQwen2Expression));
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    const std::string text = random_text(seed);
    ASSERT_EQ(pieces_of(text, 3), regex_pieces(*llama3, text)) << seed;
    ASSERT_EQ(pieces_of(text, 1), regex_pieces(*qwen2, text)) << seed;
  }
}

}  // namespace
}  // namespace lathe::data
