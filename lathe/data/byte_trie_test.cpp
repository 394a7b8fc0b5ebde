#include "lathe/data/byte_trie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lathe/data/testing/random_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::pair<std::size_t, std::int32_t>> found(const ByteTrie& trie,
                                                        std::string_view text) {
  std::vector<std::pair<std::size_t, std::int32_t>> result;
  trie.find(text,
            [&](std::size_t length, std::int32_t value) { result.emplace_back(length, value); });
  return result;
}

TEST(ByteTrie, FindsTheWordsThatATextBeginsWith) {
  const ByteTrie trie({{"the", 0}, {"then", 1}, {"t", 2}, {"hen", 3}, {"", 4}, {"the", 5}});
  EXPECT_THAT(found(trie, "thenx"), ElementsAre(Pair(1, 2), Pair(3, 5), Pair(4, 1)))
      << "of equal words the last counts";
  EXPECT_THAT(found(trie, "he"), IsEmpty());
  EXPECT_THAT(found(trie, ""), IsEmpty());
  EXPECT_THAT(found(ByteTrie(), "a"), IsEmpty());
}

TEST(ByteTrie, FindsAnyBytes) {
  std::vector<ByteTrie::Entry> entries;
  for (int byte = 0; byte < 256; ++byte)
    entries.emplace_back(std::string(2, static_cast<char>(byte)), byte);
  const ByteTrie trie(entries);
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_THAT(found(trie, std::string(3, static_cast<char>(byte))), ElementsAre(Pair(2, byte)));
}

TEST(ByteTrie, EqualsAMapOnRandomWords) {
  std::vector<ByteTrie::Entry> entries;
  std::map<std::string, std::int32_t> map;
  for (std::int32_t i = 0; i < 20'000; ++i) {
    entries.emplace_back(random_text(static_cast<std::uint64_t>(i)), i);
    if (!entries.back().first.empty()) map[entries.back().first] = i;
  }
  const ByteTrie trie(entries);
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    const std::string text = random_text(seed) + random_text(seed + 50'000);
    std::vector<std::pair<std::size_t, std::int32_t>> expected;
    for (std::size_t length = 1; length <= text.size(); ++length)
      if (const auto entry = map.find(text.substr(0, length)); entry != map.end())
        expected.emplace_back(length, entry->second);
    ASSERT_EQ(found(trie, text), expected) << "seed " << seed;
  }
}

TEST(ByteTrie, TakesAWordOfAMillionBytes) {
  const std::string word(1'000'000, 'a');
  EXPECT_THAT(found(ByteTrie({{word, 7}}), word + "b"), ElementsAre(Pair(1'000'000, 7)));
}

}  // namespace
}  // namespace lathe::data
