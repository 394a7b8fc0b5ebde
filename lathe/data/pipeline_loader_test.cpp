#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "lathe/core/testing/num_mutants.h"
#include "lathe/data/testing/temporary_directory.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

Json added(const char* content, int id, bool special = true) {
  return {{"id", id}, {"content", content}, {"special", special}, {"normalized", !special}};
}

// Llama 2's steps with a vocabulary that can be read.
Json llama() {
  Json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = 3 + byte;
  int id = 259;
  for (const char* const token : {"▁", "t", "h", "e", "▁t", "he", "▁the"}) vocabulary[token] = id++;
  return {{"version", "1.0"},
          {"added_tokens", {added("<unk>", 0), added("<s>", 1), added("</s>", 2)}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "▁"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}}},
          {"pre_tokenizer", nullptr},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
              {{"SpecialToken", {{"id", "<s>"}, {"type_id", 1}}}},
              {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocabulary},
            {"merges", {"▁ t", "h e", "▁t he"}}}}};
}

// ALBERT's steps, more or less.
Json albert() {
  return {{"version", "1.0"},
          {"added_tokens", {added("[CLS]", 1), added("[SEP]", 2), added("<New>", 8, false)}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "NFKD"}}, {{"type", "StripAccents"}}, {{"type", "Lowercase"}}}}}},
          {"pre_tokenizer",
           {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}},
          {"post_processor",
           {{"type", "RobertaProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}}},
          {"decoder", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", 0},
            {"vocab", Json::array({Json::array({"<unk>", 0.0}), Json::array({"[CLS]", 0.0}),
                                   Json::array({"[SEP]", 0.0}), Json::array({"▁", -2.5}),
                                   Json::array({"▁the", -3.5}), Json::array({"e", -4.0}),
                                   Json::array({"the", -5.0}), Json::array({"cafe", -6.0})})}}}};
}

// BERT's, which has a tokenizer of its own.
Json bert() {
  return {{"added_tokens", {added("[CLS]", 1), added("[SEP]", 2)}},
          {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"vocab",
             {{"[PAD]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"[UNK]", 3}, {"the", 4}, {"##e", 5}}}}}};
}

std::shared_ptr<const Tokenizer> load(const Json& tokenizer, std::string_view config = "") {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", tokenizer.dump());
  if (!config.empty()) directory.write("tokenizer_config.json", config);
  return load_tokenizer(directory.path());
}

TEST(PipelineLoader, ReadsSentencePieceBpe) {
  const auto tokenizer = load(llama(), R"({"bos_token": "<s>", "eos_token": "</s>"})");
  EXPECT_THAT(tokenizer->encode("the he"), ElementsAre(1, 265, 259, 264));
  EXPECT_THAT(tokenizer->encode("é"), ElementsAre(1, 259, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode("the</s>the"), ElementsAre(1, 265, 2, 265))
      << "every fragment gets a space";
  EXPECT_THAT(tokenizer->encode(""), ElementsAre(1));
  EXPECT_EQ(tokenizer->begin_id(), 1);
  EXPECT_EQ(tokenizer->end_id(), 2);
  EXPECT_EQ(tokenizer->unknown_id(), 0);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the  é the")), "the  é the");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the"), true), "<s> the");
}

TEST(PipelineLoader, ReadsUnigramModels) {
  const auto tokenizer = load(albert());
  EXPECT_THAT(tokenizer->encode("The  CAFÉ x"), ElementsAre(1, 4, 3, 3, 7, 3, 0, 2));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("The café")), "the cafe");
  EXPECT_THAT(tokenizer->encode("a<NEW>"), ElementsAre(1, 3, 0, 8, 2))
      << "matched in what is normalized, as what it is normalized to";
}

TEST(PipelineLoader, PutsTokensAroundPairs) {
  std::vector<std::int32_t> ids;
  EXPECT_EQ(load(albert())->encode_pair("the", "e", ids), 4);
  EXPECT_THAT(ids, ElementsAre(1, 4, 2, 2, 3, 5, 2)) << "RoBERTa has two tokens between";
  ids.clear();
  EXPECT_EQ(load(llama())->encode_pair("the", "the", ids), 2);
  EXPECT_THAT(ids, ElementsAre(1, 265, 1, 265));
  ids.clear();
  load(albert())->encode_pair("the the the", "e e", ids, 7);
  EXPECT_THAT(ids, ElementsAre(1, 4, 2, 2, 3, 5, 2));
}

TEST(PipelineLoader, ReadsWordpieceBehindOtherSteps) {
  const Json json = {{"normalizer", {{"type", "Lowercase"}}},
                     {"pre_tokenizer", {{"type", "Whitespace"}}},
                     {"model",
                      {{"type", "WordPiece"},
                       {"unk_token", "?"},
                       {"vocab", {{"?", 0}, {"un", 1}, {"##do", 2}, {"-", 3}}}}},
                     {"decoder", {{"type", "WordPiece"}}}};
  const auto tokenizer = load(json);
  EXPECT_THAT(tokenizer->encode("Undo-un x"), ElementsAre(1, 2, 3, 1, 0));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("Undo-un")), "undo - un");
}

TEST(PipelineLoader, CutsNothingOutOfAnEmptyText) {
  EXPECT_THAT(load(albert())->encode(""), ElementsAre(1, 2));
}

TEST(PipelineLoader, IsLoadedAgainFromItsOwnFiles) {
  const auto tokenizer = load(llama(), R"({"eos_token": "</s>", "pad_token": "t", "secret": 1})");
  const TemporaryDirectory directory;
  for (const auto& [name, contents] : tokenizer->files()) directory.write(name, contents);
  const auto again = load_tokenizer(directory.path());
  EXPECT_EQ(again->files(), tokenizer->files());
  EXPECT_EQ(again->padding_id(), 260);
  EXPECT_THAT(tokenizer->files().back().contents, testing::Not(testing::HasSubstr("secret")));
}

std::string error_of_change(Json json, const std::string& place, const Json& value) {
  json[Json::json_pointer(place)] = value;
  return error_of([&] { load(json); });
}

TEST(PipelineLoader, SaysWhatItCannotRead) {
  EXPECT_THAT(error_of_change(albert(), "/model/vocab/3", {"▁"}),
              EndsWith("tokenizer.json: token 3 is [\"\\u2581\"], expected a text and its score"));
  EXPECT_THAT(error_of_change(albert(), "/model/unk_id", 8),
              EndsWith("unk_id is 8, expected 0 to 7"));
  EXPECT_THAT(error_of_change(albert(), "/added_tokens/2/id", 10),
              EndsWith("added token \"<New>\" has the id 10, which does not fit the vocabulary"));
  EXPECT_THAT(error_of_change(albert(), "/post_processor/cls", {"[CLS]", 99}),
              EndsWith("post_processor: has the id 99, expected one below 9, the size of the "
                       "vocabulary"));
  EXPECT_THAT(error_of_change(llama(), "/post_processor/single/1/Sequence/id", "B"),
              EndsWith("post_processor: single: has the text \"B\", which is not supported there"));
  EXPECT_THAT(error_of_change(llama(), "/model/merges/0", Json::array()),
              EndsWith("merge 1: is [], expected two tokens"));
  EXPECT_THAT(error_of_change(llama(), "/model/unk_token", "nothing"),
              EndsWith("has no token \"nothing\", which stands for what has none"));
  EXPECT_THAT(error_of_change(llama(), "/normalizer/normalizers/0/type", "Append"),
              EndsWith("unknown normalizer \"Append\"; known: BertNormalizer, ByteLevel, "
                       "Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, "
                       "Sequence, Strip, StripAccents"));
}

TEST(PipelineLoader, NamesThingsOnOneLine) {
  EXPECT_THAT(error_of_change(llama(), "/normalizer/normalizers/0/type", "Pre\npend"),
              EndsWith("Sequence: \"Pre\\npend\" is not the name of anything"));
  EXPECT_THAT(error_of_change(llama(), "/model/type", "B\nPE"),
              EndsWith("tokenizer.json: \"B\\nPE\" is not the name of anything"));
  EXPECT_THAT(error_of_change(llama(), "/added_tokens/0/content", "\n"),
              EndsWith("added token \"\\n\" has the id 0, which does not fit the vocabulary"));
}

// Loads what may be a tokenizer and encodes with it; whatever it is, there are ids or one line.
void survive(const TemporaryDirectory& directory, const std::string& contents) {
  directory.write("tokenizer.json", contents);
  try {
    const auto tokenizer = load_tokenizer(directory.path());
    const std::vector<std::int32_t> ids = tokenizer->encode("The café </s> 中 <New>\n");
    tokenizer->decode(ids, true);
    std::vector<std::int32_t> pair;
    tokenizer->encode_pair("a", "b c", pair);
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

TEST(PipelineLoader, RefusesEveryPrefix) {
  const TemporaryDirectory directory;
  const std::string whole = albert().dump();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    directory.write("tokenizer.json", whole.substr(0, size));
    EXPECT_NE(error_of([&] { load_tokenizer(directory.path()); }), "no error") << size;
  }
}

TEST(PipelineLoader, SurvivesChangedBytes) {
  const TemporaryDirectory directory;
  std::mt19937 random(1);
  for (const std::string& whole : {llama().dump(), albert().dump(), bert().dump()})
    for (int i = 0; i < num_mutants(2'000) / 6; ++i) {
      std::string mutant = whole;
      for (unsigned changes = 1 + random() % 4; changes > 0; --changes)
        mutant[random() % mutant.size()] = static_cast<char>(32 + random() % 95);
      survive(directory, mutant);
    }
}

// Values of a file in places where others belong: what parses as JSON, and yet is no tokenizer.
TEST(PipelineLoader, SurvivesMisplacedValues) {
  const TemporaryDirectory directory;
  std::mt19937 random(2);
  for (const Json& whole : {llama(), albert(), bert()}) {
    const Json flat = whole.flatten();
    std::vector<std::string> places;
    for (const auto& [place, value] : flat.items()) {
      // Every place and all that it lies in.
      for (std::size_t end = place.size(); end != 0 && end != place.npos;
           end = place.rfind('/', end - 1))
        places.push_back(place.substr(0, end));
    }
    const std::vector<Json> others = {nullptr,
                                      -1,
                                      1e300,
                                      "",
                                      "x",
                                      true,
                                      1u << 31,
                                      Json::array(),
                                      Json::object(),
                                      std::string(300, 'a')};
    for (int i = 0; i < num_mutants(2'000) / 6; ++i) {
      Json mutant = whole;
      for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
        const Json::json_pointer target(places[random() % places.size()]);
        const Json::json_pointer from(places[random() % places.size()]);
        const bool is_copied = random() % 2 == 0 && mutant.contains(from);
        const Json value = is_copied ? mutant[from] : others[random() % others.size()];
        if (mutant.contains(target)) mutant[target] = value;
      }
      survive(directory, mutant.dump());
    }
  }
}

}  // namespace
}  // namespace lathe::data
