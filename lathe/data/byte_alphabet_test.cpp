#include "lathe/data/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace lathe::data {
namespace {

TEST(ByteAlphabet, WritesPrintableBytesAsThemselves) {
  EXPECT_EQ(write_in_byte_alphabet("Film!"), "Film!");
  EXPECT_EQ(write_in_byte_alphabet(" \n"), "ĠĊ");
  EXPECT_EQ(write_in_byte_alphabet("é"), "Ã©");
}

TEST(ByteAlphabet, GivesEveryByteACharacterOfItsOwn) {
  std::set<char32_t> characters;
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    characters.insert(character_of_byte(static_cast<std::uint8_t>(byte)));
    all.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(characters.size(), 256u);
  EXPECT_EQ(read_byte_alphabet(write_in_byte_alphabet(all)), all);
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  EXPECT_EQ(read_byte_alphabet("a b"), std::nullopt) << "a space is written otherwise";
  EXPECT_EQ(read_byte_alphabet("中"), std::nullopt);
}

}  // namespace
}  // namespace lathe::data
