#include "lathe/data/character_table.h"

#include <gtest/gtest.h>

namespace lathe::data {
namespace {

using enum CharacterKind;

const CharacterTable& uncased() {
  static const CharacterTable table{NormalizerOptions{}};
  return table;
}

std::string result(const CharacterTable& table, char32_t code_point) {
  const CharacterTable::Entry& entry = table.entry(code_point);
  return entry.unchanged ? "unchanged" : std::string(table.replacement(entry));
}

TEST(CharacterTable, LowercasesAndStripsAccents) {
  EXPECT_EQ(result(uncased(), U'A'), "a");
  EXPECT_EQ(result(uncased(), U'a'), "unchanged");
  EXPECT_EQ(result(uncased(), U'\u00C9'), "e");       // É
  EXPECT_EQ(result(uncased(), U'\u0130'), "i");       // İ loses its dot with the accents
  EXPECT_EQ(result(uncased(), U'\u03A3'), "\u03C3");  // Σ, never the final form
  EXPECT_EQ(result(uncased(), U'\u1E9E'), "\u00DF");  // ẞ
  EXPECT_EQ(result(uncased(), U'\u212A'), "k");       // the kelvin sign decomposes to K
}

TEST(CharacterTable, DecomposesHangulIntoJamo) {
  EXPECT_EQ(uncased().entry(U'\uAC01').kind, Word);
  EXPECT_EQ(result(uncased(), U'\uAC01'), "\u1100\u1161\u11A8");
}

TEST(CharacterTable, JudgesPunctuationAfterDecomposition) {
  EXPECT_EQ(uncased().entry(U'\u037E').kind, Isolated);  // the Greek question mark is ";"
  EXPECT_EQ(result(uncased(), U'\u037E'), ";");
  EXPECT_EQ(uncased().entry(U'\u226E').kind, Isolated);  // not less-than is "<" and a mark
  EXPECT_EQ(result(uncased(), U'\u226E'), "<");
  EXPECT_EQ(uncased().entry(U'$').kind, Isolated);   // ASCII symbols count as punctuation
  EXPECT_EQ(uncased().entry(U'\u20AC').kind, Word);  // the euro sign is a symbol and does not
}

TEST(CharacterTable, CleansBeforeItLooksForWhiteSpace) {
  EXPECT_EQ(uncased().entry(U'\t').kind, Space);
  EXPECT_EQ(uncased().entry(U'\v').kind, Removed);
  EXPECT_EQ(uncased().entry(U'\u0085').kind, Removed);  // next line is a control character
  EXPECT_EQ(uncased().entry(U'\u2028').kind, Space);
  EXPECT_EQ(uncased().entry(U'\u200B').kind, Removed);
  EXPECT_EQ(uncased().entry(U'\uFFFD').kind, Removed);
  EXPECT_EQ(uncased().entry(U'\uE000').kind, Removed);  // private use
  EXPECT_EQ(uncased().entry(U'\u0378').kind, Word);     // unassigned is kept
  const CharacterTable unclean{NormalizerOptions{.clean_text = false}};
  EXPECT_EQ(unclean.entry(U'\v').kind, Space);
  EXPECT_EQ(unclean.entry(U'\u200B').kind, Word);
}

TEST(CharacterTable, IsolatesChineseInTheReferencesRanges) {
  EXPECT_EQ(uncased().entry(U'\u4E00').kind, Isolated);
  EXPECT_EQ(uncased().entry(U'\U0002B820').kind, Word);  // the reference starts at 2B920
  EXPECT_EQ(uncased().entry(U'\U0002B920').kind, Isolated);
  EXPECT_EQ(uncased().entry(U'\uF900').kind, Isolated);
  EXPECT_EQ(result(uncased(), U'\uF900'), "\u8C48");
  EXPECT_EQ(uncased().entry(U'\u3042').kind, Word);  // hiragana stays together
  const CharacterTable joined{NormalizerOptions{.isolate_chinese_characters = false}};
  EXPECT_EQ(joined.entry(U'\u4E00').kind, Word);
}

TEST(CharacterTable, RemovesNonspacingMarksOnlyWhenStripping) {
  EXPECT_EQ(uncased().entry(U'\u0301').kind, Removed);
  EXPECT_EQ(uncased().entry(U'\u034F').kind, RemovedStarter);  // class 0: marks stay on their side
  EXPECT_EQ(uncased().entry(U'\u302E').kind, MovableMark);     // spacing, but of class 224
  EXPECT_EQ(uncased().entry(U'\U0001D15E').kind, Sequence);    // decomposes into such a mark
  const CharacterTable cased{NormalizerOptions{.strip_accents = false, .lowercase = false}};
  EXPECT_EQ(cased.entry(U'\u0301').kind, Word);
  EXPECT_EQ(result(cased, U'\u00C9'), "unchanged");
  const CharacterTable accented{NormalizerOptions{.strip_accents = false}};
  EXPECT_EQ(result(accented, U'\u00C9'), "\u00E9");
  EXPECT_EQ(result(accented, U'\u0130'), "i\u0307");
}

}  // namespace
}  // namespace lathe::data
