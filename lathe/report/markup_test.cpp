#include "lathe/report/markup.h"

#include <gtest/gtest.h>

namespace lathe::report {
namespace {

TEST(EscapeMarkup, TurnsTheFiveSpecialCharactersIntoEntities) {
  EXPECT_EQ(escape_markup(R"(<a href="x">'&'</a>)"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(EscapeMarkup, KeepsOtherScriptsAndNewLines) {
  EXPECT_EQ(escape_markup("3×3 π 層 🙂\n\tx"), "3×3 π 層 🙂\n\tx");
}

TEST(EscapeMarkup, ReplacesWhatNoDocumentMayHold) {
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1b[31m", 8)), "a\uFFFDb\uFFFD[31m");
  EXPECT_EQ(escape_markup("\xC0\xAF|\xED\xA0\x80|\xFF|\xE2\x82"),
            "\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD|\uFFFD\uFFFD");
}

TEST(PrintableLine, LeavesNothingThatMovesTheCursor) {
  EXPECT_EQ(printable_line("a\nb\r\x1b[2J\u202Ec<"), "a\uFFFDb\uFFFD\uFFFD[2J\uFFFDc<");
}

TEST(Shorten, KeepsBothEndsAndCountsCharactersNotBytes) {
  EXPECT_EQ(shorten("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(shorten("abcdefgh", 5), "ab…gh");
  EXPECT_EQ(shorten("ééééééé", 4), "éé…é");
}

}  // namespace
}  // namespace lathe::report
