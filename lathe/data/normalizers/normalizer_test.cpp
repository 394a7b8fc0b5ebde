#include "lathe/data/normalizers/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;

std::string normalized(const Json& description, std::string text) {
  NormalizedText result{.text = std::move(text)};
  make_normalizer(&description)->normalize(result);
  return result.text;
}

std::string normalized(const char* type, std::string text) {
  return normalized(Json{{"type", type}}, std::move(text));
}

// Expected values below follow from the rules of Hugging Face tokenizers 0.23.2, written out by
// hand; whole tokenizers are compared with it by bench/tokenizer_kinds_rival.py.

TEST(Normalizer, BringsTextsIntoTheFormsOfUnicode) {
  EXPECT_EQ(normalized("NFC", "e\u0301 ﬁ \uAC00\u11A8"), "é ﬁ \uAC01");
  EXPECT_EQ(normalized("NFD", "é ﬁ"), "e\u0301 ﬁ");
  EXPECT_EQ(normalized("NFKC", "e\u0301 ﬁ ㍿ ｆ²"), "é fi 株式会社 f2");
  EXPECT_EQ(normalized("NFKD", "é ﬁ"), "e\u0301 fi");
  EXPECT_EQ(normalized("NFD", "a\u0301\u0328"), "a\u0328\u0301");
  EXPECT_EQ(normalized("NFKC", "\u32FF"), "\u32FF") << "younger than Unicode 9";
}

TEST(Normalizer, ChangesCaseOneCharacterAtATime) {
  EXPECT_EQ(normalized("Lowercase", "ΟΔΟΣ İ ÀB\u1E9E"), "οδοσ i\u0307 àbß");
}

TEST(Normalizer, StripsMarksAndWhiteSpace) {
  EXPECT_EQ(normalized("StripAccents", "e\u0301 हि é"), "e ह é");
  EXPECT_EQ(normalized("Strip", "\u3000 a b \n"), "a b");
  EXPECT_EQ(normalized(Json{{"type", "Strip"}, {"strip_left", false}}, " a "), " a");
  EXPECT_EQ(normalized("Strip", " \t "), "");
}

TEST(Normalizer, ReplacesAndPrepends) {
  const auto replace = [](const char* kind, const char* pattern, const char* content) {
    return Json{{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
  };
  EXPECT_EQ(normalized(replace("String", " ", "▁"), " a  b"), "▁a▁▁b");
  EXPECT_EQ(normalized(replace("Regex", " {2,}", " "), "a   b c  "), "a b c ");
  EXPECT_EQ(normalized(replace("Regex", "\\s+", "_"), "a\v\u0085 b"), "a_b");
  const Json prepend = {{"type", "Prepend"}, {"prepend", "▁"}};
  EXPECT_EQ(normalized(prepend, "a"), "▁a");
  EXPECT_EQ(normalized(prepend, ""), "");
}

TEST(Normalizer, CleansAsForMachineTranslation) {
  EXPECT_EQ(normalized("Nmt", "a\x01\tb\u200Bc\uFEFF▁"), "a b c  ");
}

TEST(Normalizer, KnowsBerts) {
  EXPECT_EQ(normalized("BertNormalizer", "É\x01中x\t"), "e 中 x ");
  EXPECT_EQ(normalized(Json{{"type", "BertNormalizer"}, {"lowercase", false}}, "É"), "É");
}

TEST(Normalizer, RunsASequenceInOrder) {
  const Json both = {{"type", "Sequence"},
                     {"normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}}}};
  EXPECT_EQ(normalized(both, "é"), "e");
}

// A trie with the one key "x", which becomes "yz": the root, its child at 1 ^ 'x', the leaf.
TEST(Normalizer, ReadsATableOfReplacements) {
  const auto encoded = [](const std::vector<std::uint32_t>& units, const std::string& replacements,
                          std::uint32_t claimed) {
    std::string bytes(reinterpret_cast<const char*>(&claimed), 4);
    bytes.append(reinterpret_cast<const char*>(units.data()), units.size() * 4);
    bytes += replacements;
    static constexpr char kDigits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char byte : bytes) {
      bits = bits << 8 | static_cast<unsigned char>(byte);
      for (count += 8; count >= 6;) text += kDigits[bits >> (count -= 6) & 63];
    }
    if (count > 0) text += kDigits[bits << (6 - count) & 63];
    return Json{{"type", "Precompiled"}, {"precompiled_charsmap", text}};
  };
  std::vector<std::uint32_t> units(256);
  units[0] = 1u << 10;                        // children from 1 on
  units[1 ^ 'x'] = 'x' | 1u << 8 | 2u << 10;  // a key ends here; its value lies at 2 ^ here
  units[1 ^ 'x' ^ 2] = 1u << 31 | 3;          // what it becomes begins at byte 3
  const auto table = [&](std::uint32_t claimed) {
    return encoded(units, std::string("ab\0yz\0", 6), claimed);
  };
  EXPECT_EQ(normalized(table(1024), "axb"), "ayzb");
  EXPECT_EQ(normalized(table(1024), "x\u0301a"), "yza")
      << "a cluster is what its beginning becomes";
  EXPECT_EQ(error_of([&] { normalized(table(4096), ""); }),
            "Precompiled: precompiled_charsmap has 1034 bytes, and says that 4096 of them are a "
            "trie");
  EXPECT_EQ(error_of([] {
              normalized(Json{{"type", "Precompiled"}, {"precompiled_charsmap", "!"}}, "");
            }),
            "Precompiled: precompiled_charsmap is not base64");
  units[0] = ~0u;
  EXPECT_EQ(normalized(table(1024), "axb"), "axb") << "a broken table finds nothing";
}

TEST(Normalizer, RemembersWhetherATextHasLostItsBeginning) {
  const auto is_at_start = [](const char* type, std::string text) {
    const Json description = {{"type", type}};
    NormalizedText result{.text = std::move(text)};
    make_normalizer(&description)->normalize(result);
    return result.is_at_start;
  };
  EXPECT_FALSE(is_at_start("Strip", " a"));
  EXPECT_TRUE(is_at_start("Strip", "a "));
  EXPECT_FALSE(is_at_start("StripAccents", "\u0301a"));
  EXPECT_TRUE(is_at_start("StripAccents", "a\u0301"));
}

TEST(Normalizer, SaysWhatItCannotRead) {
  EXPECT_EQ(error_of([] {
              normalized(Json{{"typ", "NFC"}}, "");
            }),
            "{\"typ\":\"NFC\"} has no type");
  EXPECT_EQ(error_of([] { normalized("Replace", ""); }), "Replace: has no pattern");
  EXPECT_EQ(error_of([] {
              normalized(Json{{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}}, "");
            }),
            "Replace: pattern: the expression \"(a\" cannot be read: U_REGEX_MISMATCHED_PAREN");
  EXPECT_EQ(error_of([] { normalized("Sequence", ""); }), "Sequence: normalizers is not a list");
}

}  // namespace
}  // namespace lathe::data
