#include "lathe/data/unicode_classes.h"

#include <gtest/gtest.h>

namespace lathe::data {
namespace {

// Expected values are those of Hugging Face tokenizers 0.23.2, which was asked for every character
// of Unicode 15 outside of the large blocks of ideographs.

TEST(UnicodeClasses, TakesPunctuationOfUnicode8) {
  for (const char32_t c : {U'$', U'~', U'—', U'。', U'\u2E42', U'\u166D', U'\U000111C9'})
    EXPECT_TRUE(is_punctuation(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U'a', U'€', U'\u2E43', U'\u0C77', U'\U00011660'})
    EXPECT_FALSE(is_punctuation(c)) << static_cast<unsigned>(c);
}

TEST(UnicodeClasses, TakesAccentsOfUnicode8And9) {
  for (const char32_t c : {U'\u0301', U'\u1734'}) EXPECT_TRUE(is_nonspacing_mark(c));
  for (const char32_t c : {U'\u08D4', U'\u1885', U'\uA9BD', U'\u0903'})
    EXPECT_FALSE(is_nonspacing_mark(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U'\u0301', U'\u0903', U'\u08D4', U'\u1CF2'})
    EXPECT_TRUE(is_combining_mark(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U'\u08D3', U'\U000111C9'}) EXPECT_FALSE(is_combining_mark(c));
}

TEST(UnicodeClasses, TakesJoinersForPartsOfWords) {
  EXPECT_TRUE(is_word_character(U'\u200D'));
  EXPECT_TRUE(is_word_character(U'_'));
  EXPECT_FALSE(is_word_character(U'½'));
}

}  // namespace
}  // namespace lathe::data
