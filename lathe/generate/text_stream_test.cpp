#include "lathe/generate/text_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lathe/data/byte_alphabet.h"
#include "lathe/data/decoders/decoder.h"
#include "lathe/data/pipeline_tokenizer.h"
#include "lathe/data/token_models/bpe_model.h"

namespace lathe::generate {
namespace {

std::shared_ptr<const data::Tokenizer> make(std::vector<std::string> tokens,
                                            const nlohmann::json& decoder) {
  data::PipelineTokenizer::Parts parts;
  parts.model =
      std::make_unique<data::BpeModel>(tokens, data::BpeModel::Merges(), data::BpeModel::Options());
  parts.decoder = data::make_decoder(&decoder);
  parts.vocabulary.unread_ids = {static_cast<std::int32_t>(tokens.size()) - 1};
  parts.vocabulary.tokens = std::move(tokens);
  return std::make_shared<data::PipelineTokenizer>(std::move(parts));
}

// Every byte is a token, and there is one that only marks the end of a text.
std::shared_ptr<const data::Tokenizer> bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(data::write_in_byte_alphabet(std::string(1, static_cast<char>(byte))));
  tokens.emplace_back("<|end|>");
  return make(std::move(tokens), {{"type", "ByteLevel"}});
}

TEST(TextStream, GivesCharactersWhenTheyAreWhole) {
  TextStream stream(bytes());
  EXPECT_EQ(stream.add('a'), "a");
  EXPECT_EQ(stream.add(' '), " ");
  EXPECT_EQ(stream.add(0xE2), "");  // the euro sign
  EXPECT_EQ(stream.add(0x82), "");
  EXPECT_EQ(stream.add(0xAC), "€");
  EXPECT_EQ(stream.add(256), "");
  EXPECT_EQ(stream.add(300), "");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, ReplacesBytesThatNeverMakeACharacter) {
  TextStream stream(bytes());
  EXPECT_EQ(stream.add(0x82), "");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add('a'), "\uFFFD\uFFFDa");
  EXPECT_EQ(stream.add('b'), "b");
}

// As Llama 2 writes characters without a token of their own.
std::shared_ptr<const data::Tokenizer> byte_fallback() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
  tokens.insert(tokens.end(), {"the", "</s>"});
  return make(std::move(tokens), {{"type", "ByteFallback"}});
}

TEST(TextStream, LeavesWhatWasGivenAsItIsWhenAByteBehindItIsWrong) {
  TextStream stream(byte_fallback());
  EXPECT_EQ(stream.add('a'), "a");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add(0xA9), "é");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add(256), "\uFFFDthe");
  EXPECT_EQ(stream.add('b'), "b");
  EXPECT_EQ(stream.add(0x82), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST(TextStream, LooksBackAtWholeCharactersOfAPrompt) {
  const std::vector<std::int32_t> prompt = {0xE2, 0x82, 0xAC, 0xE2, 0x82, 0xAC};
  TextStream stream(byte_fallback(), prompt);
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add(0xA9), "é");
}

TEST(TextStream, KeepsTheSpaceBehindAPrompt) {
  const auto tokenizer = make({"▁the", "▁end", "s", "</s>"}, {{"type", "Metaspace"}});
  TextStream alone(tokenizer);
  EXPECT_EQ(alone.add(0), "the");
  EXPECT_EQ(alone.add(1), " end");
  const std::vector<std::int32_t> prompt = {0};
  TextStream behind(tokenizer, prompt);
  EXPECT_EQ(behind.add(1), " end");
  EXPECT_EQ(behind.add(2), "s");
  EXPECT_EQ(behind.add(3), "");
  EXPECT_EQ(behind.add(0), " the");
}

}  // namespace
}  // namespace lathe::generate
