#include "lathe/train/make_source.h"

#include <gtest/gtest.h>

#include "lathe/data/wordpiece_tokenizer.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::train {
namespace {

using io::refusal;

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

TEST(TextLength, IsTheModelsMostUnlessGiven) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"));
  EXPECT_EQ(text_length(model, 0), 16);
  EXPECT_EQ(text_length(model, 8), 8);
  EXPECT_EQ(refusal("", [&] { text_length(model, 17); }),
            "length 17: expected 3 to 16, the model's longest sequence");
  EXPECT_EQ(text_length(io::load_model("mlp:4,8"), 0), 0);
}

data::Dataset images(std::vector<std::int64_t> shape) {
  data::Dataset dataset;
  dataset.examples.resize(1);
  dataset.examples[0].label = 0;
  dataset.arrays = data::Arrays{shape, {}};
  dataset.arrays->values.resize(static_cast<std::size_t>(dataset.arrays->size_of_one()));
  return dataset;
}

std::string refused_images(const std::string& model, std::vector<std::int64_t> shape) {
  const data::Dataset dataset = images(std::move(shape));
  try {
    make_evaluation_source(io::load_model(model), dataset, {}, nullptr);
  } catch (const UserError& error) {
    return error.message() + "; " + error.hint();
  }
  return "accepted";
}

TEST(MakeSource, FeedsImagesAsFeaturesAndGreyOnesAsColoured) {
  EXPECT_EQ(refused_images("mlp:16,2", {1, 4, 4}), "accepted");
  EXPECT_EQ(refused_images("cnn:3x4x4,c2k3,2", {1, 4, 4}), "accepted");
}

TEST(MakeSource, RefusesImagesOfAnotherSizeOrOrder) {
  EXPECT_EQ(refused_images("cnn:1x4x4,c2k3,2", {1, 8, 8}),
            "the model reads examples of shape [1,4,4], but the data's are of shape [1,8,8]; "
            "images resize=4x4 brings them to that size");
  EXPECT_EQ(refused_images("cnn:4x4x3,c2k3,2", {3, 4, 4}),
            "the model reads examples of shape [4,4,3], but the data's are of shape [3,4,4]; "
            "the model reads the channels of a pixel side by side, which images are not fed as");
  EXPECT_EQ(refused_images("cnn:1x4x4,c2k3,2", {3, 4, 4}),
            "the model reads examples of shape [1,4,4], but the data's are of shape [3,4,4]; ");
}

TEST(MakeSource, AugmentsImagesAlone) {
  const data::Dataset rows = images({4});
  EXPECT_EQ(refusal("",
                    [&] {
                      make_training_source(io::load_model("mlp:4,2"), rows,
                                           {.augmentation = {.flips = true}}, {0});
                    }),
            "augment: the data is no images, but examples of shape [4]");
}

}  // namespace
}  // namespace lathe::train
