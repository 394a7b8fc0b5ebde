#include "lathe/data/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::data {
namespace {

// The parts of a text, tokens as [text they took].
std::string shown(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::vector<std::string> texts;
  for (const AddedToken& token : tokens) texts.push_back(token.content);
  std::string result;
  for (const AddedTokens::Part& part : AddedTokens(tokens, texts).cut(text)) {
    const std::string bytes(text.substr(part.begin, part.end - part.begin));
    result += part.id >= 0 ? "[" + bytes + "]" : bytes;
  }
  return result;
}

TEST(AddedTokens, AreFoundLeftmostAndLongest) {
  const std::vector<AddedToken> tokens = {
      {.content = "ab", .id = 0}, {.content = "abc", .id = 1}, {.content = "bc", .id = 2}};
  EXPECT_EQ(shown(tokens, "xabcabbc"), "x[abc][ab][bc]");
  EXPECT_EQ(shown(tokens, "aab"), "a[ab]");
  EXPECT_EQ(shown(tokens, ""), "");
}

TEST(AddedTokens, TakeTheWhiteSpaceAroundThemWhenTold) {
  EXPECT_EQ(shown({{.content = "<m>", .lstrip = true, .id = 0}}, "a \u00A0\t<m> b <m><m>"),
            "a[ \u00A0\t<m>] b[ <m>][<m>]");
  EXPECT_EQ(shown({{.content = "<m>", .rstrip = true, .id = 0}}, "a <m> \u3000b<m>"),
            "a [<m> \u3000]b[<m>]");
}

TEST(AddedTokens, MayBeWholeWordsOnly) {
  const std::vector<AddedToken> tokens = {{.content = "new", .single_word = true, .id = 0}};
  EXPECT_EQ(shown(tokens, "new news renew (new) new_ énew new"),
            "[new] news renew ([new]) new_ énew [new]");
}

}  // namespace
}  // namespace lathe::data
