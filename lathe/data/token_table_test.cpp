#include "lathe/data/token_table.h"

#include <gtest/gtest.h>

namespace lathe::data {
namespace {

std::int32_t find(const TokenTable& table, std::string text) {
  const std::size_t length = text.size();
  text += "!garbage";  // what follows a text must not matter
  return table.find(text.data(), length);
}

TEST(TokenTable, FindsTokensOfEveryLength) {
  TokenTable table(40);
  for (int length = 1; length <= 40; ++length)
    table.insert(std::string(static_cast<std::size_t>(length), 'a'), length);
  for (int length = 1; length <= 40; ++length)
    EXPECT_EQ(find(table, std::string(static_cast<std::size_t>(length), 'a')), length);
  EXPECT_EQ(find(table, std::string(41, 'a')), TokenTable::kAbsent);
  EXPECT_EQ(table.longest(), 40u);
}

TEST(TokenTable, TellsTokensApartThatDifferPastTheEighthByte) {
  TokenTable table(2);
  table.insert("cinematography", 1);
  table.insert("cinematographer", 2);
  EXPECT_EQ(find(table, "cinematography"), 1);
  EXPECT_EQ(find(table, "cinematographer"), 2);
  EXPECT_EQ(find(table, "cinematographic"), TokenTable::kAbsent);
}

TEST(TokenTable, TellsATextFromOneWithZeroBytesAtItsEnd) {
  TokenTable table(1);
  table.insert("ab", 1);
  EXPECT_EQ(find(table, std::string("ab\0", 3)), TokenTable::kAbsent);
}

TEST(TokenTable, KeepsTheLastIdOfARepeatedToken) {
  TokenTable table(2);
  table.insert("the", 3);
  table.insert("the", 7);
  EXPECT_EQ(find(table, "the"), 7);
}

TEST(TokenTable, FindsNothingInAnEmptyTable) {
  EXPECT_EQ(find(TokenTable(), "a"), -1);
}

}  // namespace
}  // namespace lathe::data
