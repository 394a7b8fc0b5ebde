#include "lathe/data/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace lathe::data {
namespace {

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> all;
  const char* next = text.data();
  while (next != text.data() + text.size())
    all.push_back(next_code_point(next, text.data() + text.size()));
  return all;
}

TEST(Utf8, ReadsEveryLengthOfSequence) {
  EXPECT_THAT(code_points("a\u00E9\u20AC\U0001F600"),
              testing::ElementsAre(U'a', 0xE9, 0x20AC, 0x1F600));
}

TEST(Utf8, ReadsBrokenSequencesAsReplacementCharacters) {
  EXPECT_THAT(code_points("a\xFFz"), testing::ElementsAre(U'a', 0xFFFD, U'z'));
  EXPECT_THAT(code_points("\xE2\x82"), testing::ElementsAre(0xFFFD)) << "cut off";
  EXPECT_THAT(code_points("\xE2\x82z"), testing::ElementsAre(0xFFFD, U'z')) << "interrupted";
  EXPECT_THAT(code_points("\xC0\xAF"), testing::ElementsAre(0xFFFD, 0xFFFD)) << "overlong";
  EXPECT_THAT(code_points("\xED\xA0\x80"), testing::ElementsAre(0xFFFD, 0xFFFD, 0xFFFD))
      << "surrogate";
  EXPECT_THAT(code_points("\xF4\x90\x80\x80"), testing::Each(0xFFFD)) << "past U+10FFFF";
}

TEST(Utf8, WritesWhatItReads) {
  for (const char32_t code_point : {0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF}) {
    std::string text;
    append_utf8(code_point, text);
    EXPECT_THAT(code_points(text), testing::ElementsAre(code_point));
  }
}

TEST(Utf8, TellsALiteralReplacementCharacterFromABrokenSequence) {
  EXPECT_TRUE(is_utf8("fine \uFFFD"));
  EXPECT_FALSE(is_utf8("broken \xE2\x82"));
  EXPECT_EQ(as_utf8("broken \xE2\x82"), "broken \uFFFD");
}

}  // namespace
}  // namespace lathe::data
