#include "lathe/generate/text_stream.h"

#include <gtest/gtest.h>

#include "lathe/data/byte_alphabet.h"
#include "lathe/data/byte_level_bpe.h"

namespace lathe::generate {
namespace {

// Every byte is a token, and there is one that only marks the end of a text.
std::shared_ptr<const data::Tokenizer> bytes() {
  data::Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.tokens.push_back(
        data::write_in_byte_alphabet(std::string(1, static_cast<char>(byte))));
  vocabulary.tokens.push_back("<|end|>");
  vocabulary.special_ids = {256};
  vocabulary.source = "bytes";
  return std::make_shared<data::ByteLevelBpe>(std::move(vocabulary),
                                              std::vector<std::pair<std::string, std::string>>(),
                                              data::ByteLevelBpe::Options());
}

TEST(TextStream, GivesCharactersWhenTheyAreWhole) {
  TextStream stream(bytes());
  EXPECT_EQ(stream.add('a'), "a");
  EXPECT_EQ(stream.add(' '), " ");
  EXPECT_EQ(stream.add(0xE2), "");  // the euro sign
  EXPECT_EQ(stream.add(0x82), "");
  EXPECT_EQ(stream.add(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(stream.add(256), "");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.finish(), "\xC3");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, PassesOnBytesThatNeverMakeACharacter) {
  TextStream stream(bytes());
  EXPECT_EQ(stream.add(0x82), "\x82");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add('a'),
            "\xC3"
            "a");
}

}  // namespace
}  // namespace lathe::generate
