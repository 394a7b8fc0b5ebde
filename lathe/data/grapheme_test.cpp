#include "lathe/data/grapheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unicode/brkiter.h>

#include <memory>
#include <string>
#include <vector>

#include "lathe/data/testing/random_text.h"

namespace lathe::data {
namespace {

using testing::ElementsAre;

std::vector<std::string> clusters_of(std::string_view text) {
  std::vector<std::string> clusters;
  while (!text.empty()) {
    const std::size_t length = grapheme_length(text);
    clusters.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return clusters;
}

TEST(Grapheme, IsWhatAReaderTakesForOneCharacter) {
  EXPECT_THAT(clusters_of("ae\u0301\r\nb"), ElementsAre("a", "e\u0301", "\r\n", "b"));
  EXPECT_THAT(clusters_of("👩‍🚀👍🏽🇨🇭🇨🇭"),
              ElementsAre("👩‍🚀", "👍🏽", "🇨🇭", "🇨🇭"));
  EXPECT_THAT(clusters_of("\u1100\u1161\u11A8\uAC00"), ElementsAre("\u1100\u1161\u11A8", "\uAC00"))
      << "a syllable of Hangul";
  EXPECT_THAT(clusters_of("\x01\u0301"), ElementsAre("\x01", "\u0301"))
      << "no mark stands on a control character";
}

TEST(Grapheme, EqualsIcusOnRandomTexts) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  ASSERT_TRUE(U_SUCCESS(status));
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const std::string text = random_text(seed);
    const icu::UnicodeString wide = icu::UnicodeString::fromUTF8(text);
    breaks->setText(wide);
    std::vector<std::string> expected;
    for (std::int32_t at = 0, next = 0; (next = breaks->following(at)) != icu::BreakIterator::DONE;
         at = next) {
      expected.emplace_back();
      wide.tempSubStringBetween(at, next).toUTF8String(expected.back());
    }
    ASSERT_EQ(clusters_of(text), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lathe::data
