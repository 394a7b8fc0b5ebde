#include "lathe/train/text_classifier.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/data/wordpiece_tokenizer.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::train {
namespace {

using io::refusal;

data::Batch three_sequences() {
  return {.ids = {2, 5, 7, 3, 2, 8, 3, 2, 6, 13, 11, 9, 3},
          .offsets = {0, 4, 7, 13},
          .labels = {0, 1, 0},
          .example_indices = {0, 1, 2}};
}

TEST(TextClassifier, GivesTheSameLogitsHoweverItRuns) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"));
  TextClassifier reference(model, {.execution = {.device = "reference"}});
  const Tensor expected = reference.logits(three_sequences());
  ASSERT_EQ(expected.dims(), (std::vector<std::int64_t>{3, 2}));
  for (const char* device : {"reference", "cpu"}) {
    for (const bool is_padded : {false, true}) {
      TextClassifier classifier(model, {.is_padded = is_padded, .execution = {.device = device}});
      const Tensor logits = classifier.logits(three_sequences());
      ASSERT_EQ(logits.dims(), expected.dims());
      for (std::int64_t i = 0; i < 6; ++i)
        EXPECT_NEAR(logits.at(i), expected.at(i), 1e-5) << device << " " << is_padded;
    }
  }
}

TEST(TextClassifier, IsRefusedWhileItsHeadIsFresh) {
  const io::ScratchDirectory scratch;
  State weights = io::tiny_weights();
  weights.erase("classifier.bias");
  const std::string directory = io::write_tiny_bert(scratch, "m", weights);
  const io::Model model = io::load_model(directory);
  try {
    TextClassifier(model, {.execution = {.device = "reference"}});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(),
              directory + ": has no trained classifier: tensor \"classifier.bias\" is missing");
    EXPECT_EQ(error.hint(), "train it first: lathe train --model M --data D --out DIR");
  }
  EXPECT_NO_THROW(
      TextClassifier(model, {.allow_fresh = true, .execution = {.device = "reference"}}));
}

TEST(TextClassifier, IsRefusedForAnotherTask) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  const io::Model model = io::load_model(directory, {.task = "encode"});
  EXPECT_EQ(refusal(directory, [&] { TextClassifier(model, {}); }),
            "is a model for encode, not a classifier");
}

TEST(TextClassifier, IsRefusedWhenLabelsAndLogitsDiffer) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  io::Model model = io::load_model(directory);
  model.label_names = {"only"};
  EXPECT_EQ(refusal(directory, [&] { TextClassifier(model, {}); }),
            "its graph gives logits f32[B,2]: expected f32[B,1], one for each label");
}

TEST(TextClassifier, IsRefusedWhenItsGraphReadsMoreThanTexts) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  const io::Model model =
      io::load_model(directory, {.inputs = {"input_ids", "attention_mask", "token_type_ids"}});
  EXPECT_EQ(refusal(directory, [&] { TextClassifier(model, {}); }),
            "its graph has the input \"token_type_ids\", which is not made from texts");
}

TEST(TextClassifier, IsRefusedPaddedWhenItsGraphHasNoMask) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  const io::Model model = io::load_model(directory, {.inputs = {"input_ids"}});
  EXPECT_NO_THROW(TextClassifier(model, {}));
  EXPECT_EQ(refusal(directory, [&] { TextClassifier(model, {.is_padded = true}); }),
            "its graph has no input attention_mask, so that padding would change its answers");
}

TEST(LoadTokenizer, RefusesAVocabularyOfTheWrongSize) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  scratch.write("m/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  const io::Model model = io::load_model(directory);
  EXPECT_EQ(refusal(directory, [&] { load_tokenizer(model); }),
            "vocab.txt: has 6 tokens, but config.json says vocab_size is 20");
}

TEST(LoadTokenizer, PrefersTheModelsOwnVocabulary) {
  const io::ScratchDirectory scratch;
  io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"));
  std::vector<std::string> tokens = io::tiny_vocabulary();
  tokens[5] = "wonderful";
  model.tokenizer = std::make_shared<const data::WordpieceTokenizer>(
      data::WordpieceTokenizer::from_vocabulary(tokens));
  EXPECT_EQ(load_tokenizer(model)->token(5), "wonderful");
}

TEST(LoadTokenizer, RefusesAModelThatReadsNoText) {
  EXPECT_EQ(refusal("", [] { load_tokenizer(io::load_model("mlp:4,8")); }),
            "a mlp model does not read text");
  EXPECT_EQ(refusal("", [] { load_tokenizer(io::load_model("bert-tiny")); }),
            "a model made by name has no vocabulary: give a model directory");
}

TEST(MaxLength, IsTheNumberOfPositions) {
  const io::ScratchDirectory scratch;
  EXPECT_EQ(max_length(io::load_model(io::write_tiny_bert(scratch, "m"))), 16);
}

}  // namespace
}  // namespace lathe::train
