#include "lathe/data/pre_tokenizers/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

std::vector<std::string> pieces_of(const Json& description, std::string text) {
  CutText cut(NormalizedText{.text = std::move(text)});
  make_pre_tokenizer(&description)->cut(cut);
  std::vector<std::string> pieces;
  for (const CutText::Piece& piece : cut.pieces) pieces.emplace_back(cut.view(piece));
  return pieces;
}

std::vector<std::string> pieces_of(const char* type, std::string text) {
  return pieces_of(Json{{"type", type}}, std::move(text));
}

// Expected values below follow from the rules of Hugging Face tokenizers 0.23.2, written out by
// hand; whole tokenizers are compared with it by bench/tokenizer_kinds_rival.py.

TEST(PreTokenizer, CutsAtClassesOfCharacters) {
  EXPECT_THAT(pieces_of("WhitespaceSplit", " a.b\u3000c\n"), ElementsAre("a.b", "c"));
  EXPECT_THAT(pieces_of("BertPreTokenizer", "a.b $c—"), ElementsAre("a", ".", "b", "$", "c", "—"));
  EXPECT_THAT(pieces_of("Whitespace", "it's a_b €5!?"),
              ElementsAre("it", "'", "s", "a_b", "€", "5", "!?"));
  EXPECT_THAT(pieces_of("Punctuation", "a. b"), ElementsAre("a", ".", " b"));
  EXPECT_THAT(pieces_of("Digits", "a12½b"), ElementsAre("a", "12½", "b"));
  EXPECT_THAT(pieces_of(Json{{"type", "Digits"}, {"individual_digits", true}}, "a12"),
              ElementsAre("a", "1", "2"));
  EXPECT_THAT(pieces_of(Json{{"type", "CharDelimiterSplit"}, {"delimiter", "é"}}, "aébé"),
              ElementsAre("a", "b"));
}

TEST(PreTokenizer, CutsWhereTheScriptChanges) {
  EXPECT_THAT(pieces_of("UnicodeScripts", "これは本 is good"), ElementsAre("これは本 ", "is good"));
}

TEST(PreTokenizer, LeavesDelimitersWhereItIsTold) {
  const auto split = [](const char* behavior, bool invert = false) {
    return pieces_of(Json{{"type", "Split"},
                          {"pattern", {{"String", "-"}}},
                          {"behavior", behavior},
                          {"invert", invert}},
                     "-a--b-");
  };
  EXPECT_THAT(split("Removed"), ElementsAre("a", "b"));
  EXPECT_THAT(split("Isolated"), ElementsAre("-", "a", "-", "-", "b", "-"));
  EXPECT_THAT(split("MergedWithPrevious"), ElementsAre("-", "a-", "-", "b-"));
  EXPECT_THAT(split("MergedWithNext"), ElementsAre("-a", "-", "-b", "-"));
  EXPECT_THAT(split("Contiguous"), ElementsAre("-", "a", "--", "b", "-"));
  EXPECT_THAT(split("Removed", true), ElementsAre("-", "-", "-", "-"));
}

TEST(PreTokenizer, CutsByExpressions) {
  const auto split = [](const char* expression, std::string text) {
    return pieces_of(
        Json{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}},
        std::move(text));
  };
  EXPECT_THAT(split("[一-龥]+", "ab中文c"), ElementsAre("ab", "中文", "c"));
  EXPECT_THAT(split("\\s", "a\vb"), ElementsAre("a", "\v", "b"));
  EXPECT_THAT(split("\\w+", "a½ \u200Db"), ElementsAre("a½", " \u200D", "b"))
      << "words are other than Unicode's";
  EXPECT_THAT(split("\\d\\b", "12\u200Dx3a"), ElementsAre("1", "2", "\u200Dx3a"));
  EXPECT_THAT(split("x*", "ab"), ElementsAre("ab")) << "what matches nothing cuts nothing";
  EXPECT_THAT(error_of([&] { split("(a+)+$", std::string(40, 'a') + "b"); }),
              testing::MatchesRegex("the expression .* cannot be matched with a text of 41 bytes: "
                                    "U_REGEX_(TIME_OUT|STACK_OVERFLOW)"));
}

TEST(PreTokenizer, WritesSpacesVisibly) {
  const auto metaspace = [](const char* scheme, bool split = true) {
    return Json{
        {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}};
  };
  EXPECT_THAT(pieces_of(metaspace("always"), "a  b"), ElementsAre("▁a", "▁", "▁b"));
  EXPECT_THAT(pieces_of(metaspace("always"), " a"), ElementsAre("▁a"));
  EXPECT_THAT(pieces_of(metaspace("never"), "a b"), ElementsAre("a", "▁b"));
  EXPECT_THAT(pieces_of(metaspace("first", false), "a b"), ElementsAre("▁a▁b"));
  const Json behind = {{"type", "Sequence"},
                       {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("first")}}};
  EXPECT_THAT(pieces_of(behind, "a b"), ElementsAre("▁a", "b"));
  const Json older = {{"type", "Metaspace"}, {"add_prefix_space", false}};
  EXPECT_THAT(pieces_of(older, "a b"), ElementsAre("a", "▁b"));
}

TEST(PreTokenizer, WritesBytesAsCharacters) {
  EXPECT_THAT(pieces_of("ByteLevel", "a é"), ElementsAre("Ġa", "ĠÃ©"));
  const Json plain = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  EXPECT_THAT(pieces_of(plain, "a é"), ElementsAre("aĠÃ©"));
}

TEST(PreTokenizer, SaysWhatItCannotRead) {
  EXPECT_EQ(
      error_of([] {
        pieces_of(Json{{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "x"}}, "");
      }),
      "Split: unknown behavior \"x\"; known: Contiguous, Isolated, MergedWithNext, "
      "MergedWithPrevious, Removed");
  EXPECT_EQ(error_of([] {
              pieces_of(Json{{"type", "CharDelimiterSplit"}}, "");
            }),
            "CharDelimiterSplit: delimiter is not one character");
  EXPECT_EQ(error_of([] {
              pieces_of(Json{{"type", "Metaspace"}, {"replacement", "ab"}}, "");
            }),
            "Metaspace: replacement is \"ab\", expected one character");
}

}  // namespace
}  // namespace lathe::data
