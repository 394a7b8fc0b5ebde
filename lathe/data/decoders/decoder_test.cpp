#include "lathe/data/decoders/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using Tokens = std::vector<std::string>;

Tokens decoded(const Json& description, Tokens tokens) {
  make_decoder(&description)->decode(tokens);
  return tokens;
}

// Expected values below follow from the rules of Hugging Face tokenizers 0.23.2, written out by
// hand; whole tokenizers are compared with it by bench/tokenizer_kinds_rival.py.

TEST(Decoder, JoinsBytesBeforeItReadsThem) {
  EXPECT_THAT(decoded({{"type", "ByteLevel"}}, {"Ġa", "Ã", "©", "Ã"}), ElementsAre(" aé\uFFFD"));
  EXPECT_THAT(
      decoded({{"type", "ByteFallback"}}, {"a", "<0xC3>", "<0xA9>", "b", "<0xFF>", "<0x4>"}),
      ElementsAre("a", "é", "b", "\uFFFD", "<0x4>"));
}

TEST(Decoder, WritesSpacesAgain) {
  EXPECT_THAT(decoded({{"type", "Metaspace"}}, {"▁a", "▁b", "c▁"}), ElementsAre("a", " b", "c "));
  EXPECT_THAT(decoded({{"type", "Metaspace"}, {"prepend_scheme", "never"}}, {"▁a"}),
              ElementsAre(" a"));
  EXPECT_THAT(decoded({{"type", "WordPiece"}}, {"un", "##able", "do", "n't", ",", "."}),
              ElementsAre("un", "able", " do", "n't", ",", "."));
  EXPECT_THAT(decoded({{"type", "WordPiece"}, {"cleanup", false}}, {"a", "."}),
              ElementsAre("a", " ."));
  EXPECT_THAT(decoded({{"type", "BPEDecoder"}}, {"th", "e</w>", "end</w>"}),
              ElementsAre("th", "e ", "end"));
}

TEST(Decoder, RunsASequenceInOrder) {
  const Json llama = {{"type", "Sequence"},
                      {"decoders",
                       {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                        {{"type", "ByteFallback"}},
                        {{"type", "Fuse"}},
                        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  EXPECT_THAT(decoded(llama, {"▁▁a", "<0xE4>", "<0xB8>", "<0xAD>", "▁"}), ElementsAre(" a中 "));
  EXPECT_THAT(decoded(llama, {}), ElementsAre(""));
}

TEST(Decoder, SaysWhatItCannotRead) {
  EXPECT_EQ(error_of([] {
              decoded({{"type", "Strip"}, {"start", -1}}, {});
            }),
            "Strip: start is -1, expected 0 to 1048576");
}

}  // namespace
}  // namespace lathe::data
