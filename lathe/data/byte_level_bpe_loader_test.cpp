#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lathe/data/byte_alphabet.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::EndsWith;

json vocabulary() {
  json tokens = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    tokens[write_in_byte_alphabet({&one, 1})] = byte;
  }
  tokens["he"] = 256;
  tokens["Ġhe"] = 257;
  tokens["<|endoftext|>"] = 258;
  return tokens;
}

json tokenizer_json() {
  return {{"version", "1.0"},
          {"added_tokens",
           {{{"id", 258}, {"content", "<|endoftext|>"}, {"normalized", true}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"continuing_subword_prefix", ""},
            {"vocab", vocabulary()},
            {"merges", {"h e", "Ġ he"}}}}};
}

std::shared_ptr<const Tokenizer> load(const json& tokenizer, std::string_view config = "") {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", tokenizer.dump());
  if (!config.empty()) directory.write("tokenizer_config.json", config);
  return load_tokenizer(directory.path());
}

TEST(ByteLevelBpeLoader, ReadsATokenizerJson) {
  const auto tokenizer = load(tokenizer_json());
  EXPECT_EQ(tokenizer->vocabulary_size(), 259);
  EXPECT_THAT(tokenizer->encode("he he<|endoftext|>"), ElementsAre(256, 257, 258));
  EXPECT_EQ(tokenizer->padding_id(), 258);
  EXPECT_EQ(tokenizer->mask_id(), -1);
  EXPECT_THAT(tokenizer->special_ids(), ElementsAre(258));
}

TEST(ByteLevelBpeLoader, ReadsMergesAsPairsAndModelsWithoutAType) {
  json changed = tokenizer_json();
  changed["model"]["merges"] = json::array({json::array({"h", "e"}), json::array({"Ġ", "he"})});
  changed["model"].erase("type");
  EXPECT_THAT(load(changed)->encode("he he"), ElementsAre(256, 257));
}

TEST(ByteLevelBpeLoader, ReadsAVocabularyAndItsMerges) {
  const TemporaryDirectory directory;
  directory.write("vocab.json", vocabulary().dump());
  directory.write("merges.txt", "#version: 0.2\nh e\nĠ he\n");
  EXPECT_THAT(load_tokenizer(directory.path())->encode("he he<|endoftext|>"),
              ElementsAre(256, 257, 258));
  directory.write("tokenizer_config.json",
                  R"({"add_prefix_space": true, "added_tokens_decoder": {"259": {"content": "<p>"}},
                      "pad_token": "<p>"})");
  const auto tokenizer = load_tokenizer(directory.path());
  EXPECT_THAT(tokenizer->encode("he<p>"), ElementsAre(257, 259));
  EXPECT_EQ(tokenizer->padding_id(), 259);
}

TEST(ByteLevelBpeLoader, PutsTokensAroundATextWhenTold) {
  json changed = tokenizer_json();
  changed["post_processor"] = {{"type", "TemplateProcessing"},
                               {"single",
                                {{{"SpecialToken", {{"id", "<|endoftext|>"}, {"type_id", 0}}}},
                                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}};
  EXPECT_THAT(load(changed)->encode("he"), ElementsAre(258, 256));
  EXPECT_EQ(load(changed)->num_special(), 1);
  changed["post_processor"] = {
      {"type", "RobertaProcessing"}, {"cls", {"he", 256}}, {"sep", {"<|endoftext|>", 258}}};
  EXPECT_THAT(load(changed)->encode("x"), ElementsAre(256, 'x', 258));
}

TEST(ByteLevelBpeLoader, IsLoadedAgainFromItsOwnFiles) {
  for (const bool is_json : {true, false}) {
    const TemporaryDirectory directory;
    if (is_json) directory.write("tokenizer.json", tokenizer_json().dump());
    directory.write("vocab.json", vocabulary().dump());
    directory.write("merges.txt", "h e\nĠ he\n");
    directory.write("tokenizer_config.json", R"({"add_prefix_space": true, "secret": 1})");
    const auto tokenizer = load_tokenizer(directory.path());
    for (const auto& [name, contents] : tokenizer->files())
      directory.write("copy/" + name, contents);
    const auto again = load_tokenizer(directory.path() / "copy");
    EXPECT_THAT(again->encode("he<|endoftext|>"), ElementsAre(257, 258));
    EXPECT_EQ(again->files(), tokenizer->files());
    EXPECT_THAT(tokenizer->files().back().contents, testing::Not(testing::HasSubstr("secret")));
  }
}

std::string error_of_change(const std::string& place, const json& value) {
  json changed = tokenizer_json();
  changed[json::json_pointer(place)] = value;
  return error_of([&] { load(changed); });
}

TEST(ByteLevelBpeLoader, RefusesWhatItDoesNotSupportByName) {
  EXPECT_THAT(error_of_change("/normalizer", {{"type", "NFX"}}),
              EndsWith("tokenizer.json: normalizer: unknown normalizer \"NFX\"; known: "
                       "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
                       "Precompiled, Prepend, Replace, Sequence, Strip, StripAccents"));
  EXPECT_THAT(error_of_change("/pre_tokenizer", {{"type", "Jieba"}}),
              EndsWith("pre_tokenizer: unknown pre-tokenizer \"Jieba\"; known: BertPreTokenizer, "
                       "ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, "
                       "Split, UnicodeScripts, Whitespace, WhitespaceSplit"));
  EXPECT_THAT(error_of_change("/post_processor", {{"type", "Pairs"}}),
              EndsWith("post_processor: unknown post-processor \"Pairs\"; known: BertProcessing, "
                       "ByteLevel, RobertaProcessing, Sequence, TemplateProcessing"));
  EXPECT_THAT(error_of_change("/decoder", {{"type", "CTC"}}),
              EndsWith("decoder: unknown decoder \"CTC\"; known: BPEDecoder, ByteFallback, "
                       "ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, WordPiece"));
  EXPECT_THAT(error_of_change("/model/dropout", 0.1),
              EndsWith("model.dropout is 0.1, which is not supported: ids would be random"));
  EXPECT_THAT(error_of_change("/model/merges/1", "Ġhe"),
              EndsWith("merge 2: is \"\\u0120he\", expected two tokens with a space between them"));
  EXPECT_THAT(error_of_change("/model/merges/1", "h h"),
              EndsWith("tokenizer.json: merge 2: has no token \"hh\""));
}

TEST(ByteLevelBpeLoader, NeedsBothFiles) {
  const TemporaryDirectory directory;
  directory.write("merges.txt", "h e\n");
  EXPECT_THAT(error_of([&] { load_tokenizer(directory.path()); }),
              EndsWith("vocab.json: is absent, but merges.txt is there: expected both"));
  directory.write("vocab.json", vocabulary().dump());
  directory.write("merges.txt", "h e\nhe\n");
  EXPECT_THAT(error_of([&] { load_tokenizer(directory.path()); }),
              EndsWith("merges.txt: line 2: is \"he\", expected two tokens with a space between "
                       "them"));
}

}  // namespace
}  // namespace lathe::data
