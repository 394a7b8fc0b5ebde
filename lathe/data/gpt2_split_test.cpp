#include "lathe/data/gpt2_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lathe/data/testing/gpt2_regex.h"
#include "lathe/data/testing/random_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t length = gpt2_piece_length(text);
    pieces.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

TEST(Gpt2Split, KeepsASpaceWithTheWordThatFollows) {
  EXPECT_THAT(pieces_of("A fine film, 1999!"),
              ElementsAre("A", " fine", " film", ",", " 1999", "!"));
  EXPECT_THAT(pieces_of("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(pieces_of("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(pieces_of("a\n\nb\t c"), ElementsAre("a", "\n", "\n", "b", "\t", " c"));
  EXPECT_THAT(pieces_of("end  "), ElementsAre("end", "  "));
}

TEST(Gpt2Split, CutsContractionsInLowerCase) {
  EXPECT_THAT(pieces_of("it's we'll I'M 'sky '"),
              ElementsAre("it", "'s", " we", "'ll", " I", "'", "M", " '", "sky", " '"));
  EXPECT_THAT(pieces_of("don't've'"), ElementsAre("don", "'t", "'ve", "'"));
}

TEST(Gpt2Split, GoesByUnicode) {
  EXPECT_THAT(pieces_of("中文 ½x\u00A0\u00A0é"),
              ElementsAre("中文", " ½", "x", "\u00A0", "\u00A0", "é"));
  EXPECT_THAT(pieces_of("👍🏽 ok\u200D"), ElementsAre("👍🏽", " ok", "\u200D"));
  EXPECT_THAT(pieces_of("e\u0301"), ElementsAre("e", "\u0301")) << "a mark is no letter";
}

TEST(Gpt2Split, EqualsItsRegularExpressionOnRandomTexts) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const std::string text = random_text(seed);
    ASSERT_EQ(pieces_of(text), gpt2_regex_pieces(text)) << "seed " << seed << ": " << text;
  }
}

}  // namespace
}  // namespace lathe::data
