#include "lathe/generate/encode_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::generate {
namespace {

using testing::ElementsAre;

TEST(EncodePrompt, LeavesOutWhatStandsBehindWholeTexts) {
  const auto tokenizer = data::WordpieceTokenizer::from_vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "##s", "are"});
  EXPECT_THAT(tokenizer.encode("films are"), ElementsAre(2, 5, 6, 7, 3));
  EXPECT_THAT(encode_prompt(tokenizer, "films are"), ElementsAre(2, 5, 6, 7));
  EXPECT_THAT(encode_prompt(tokenizer, ""), ElementsAre(2));
}

TEST(EncodePrompt, KeepsWhatTheTextItselfEndsWith) {
  const auto tokenizer = data::WordpieceTokenizer::from_vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "##s", "are"});
  EXPECT_THAT(encode_prompt(tokenizer, "films [CLS]"), ElementsAre(2, 5, 6, 2));
  EXPECT_THAT(encode_prompt(tokenizer, "films [SEP]"), ElementsAre(2, 5, 6, 3));
}

}  // namespace
}  // namespace lathe::generate
