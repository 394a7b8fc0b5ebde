#include "lathe/train/classifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/data/wordpiece_tokenizer.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

using io::refusal;

data::Batch three_sequences() {
  return {.ids = {2, 5, 7, 3, 2, 8, 3, 2, 6, 13, 11, 9, 3},
          .offsets = {0, 4, 7, 13},
          .labels = {0, 1, 0},
          .example_indices = {0, 1, 2}};
}

Feed feed(bool is_padded) {
  TextFeeding feeding;
  if (is_padded) feeding.padding_id = 0;
  return evaluation_feed(three_sequences(), feeding);
}

TEST(Classifier, GivesTheSameLogitsHoweverItRuns) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"));
  Classifier reference(model, {.execution = {.device = "reference"}});
  const Tensor expected = reference.logits(feed(false));
  ASSERT_EQ(expected.dims(), (std::vector<std::int64_t>{3, 2}));
  for (const char* device : {"reference", "cpu"}) {
    for (const bool is_padded : {false, true}) {
      Classifier classifier(model, {.is_padded = is_padded, .execution = {.device = device}});
      const Tensor logits = classifier.logits(feed(is_padded));
      ASSERT_EQ(logits.dims(), expected.dims());
      for (std::int64_t i = 0; i < 6; ++i)
        EXPECT_NEAR(logits.at(i), expected.at(i), 1e-5) << device << " " << is_padded;
    }
  }
}

TEST(Classifier, IsRefusedWhileItsHeadIsFresh) {
  const io::ScratchDirectory scratch;
  State weights = io::tiny_weights();
  weights.erase("classifier.bias");
  const std::string directory = io::write_tiny_bert(scratch, "m", weights);
  const io::Model model = io::load_model(directory);
  try {
    Classifier(model, {.execution = {.device = "reference"}});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(),
              directory + ": has no trained classifier: tensor \"classifier.bias\" is missing");
    EXPECT_EQ(error.hint(), "train it first: lathe train --model M --data D --out DIR");
  }
  EXPECT_NO_THROW(Classifier(model, {.allows_fresh = true, .execution = {.device = "reference"}}));
}

// Weights that are finite may be too large for what they are multiplied with.
TEST(Classifier, RefusesToAnswerWithWhatIsNoNumber) {
  const io::ScratchDirectory scratch;
  State weights = io::tiny_weights();
  for (const char* const name : {"bert.encoder.layer.0.attention.self.value.bias",
                                 "bert.encoder.layer.0.attention.output.dense.weight"})
    std::ranges::fill(weights.at(name).mutable_data<float>(), 3e38f);
  const std::string directory = io::write_tiny_bert(scratch, "m", weights);
  const io::Model model = io::load_model(directory);
  for (const char* device : {"reference", "cpu"}) {
    Classifier classifier(model, {.execution = {.device = device}});
    EXPECT_EQ(refusal(directory, [&] { classifier.logits(feed(false)); }),
              "gives a logit that is not finite: its weights or formats overflow");
  }
}

TEST(Classifier, IsRefusedForAnotherTask) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  const io::Model model = io::load_model(directory, {.task = "encode"});
  EXPECT_EQ(refusal(directory, [&] { Classifier(model, {}); }),
            "is a model for encode, not a classifier");
}

TEST(Classifier, IsRefusedWhenLabelsAndLogitsDiffer) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  io::Model model = io::load_model(directory);
  model.label_names = {"only"};
  EXPECT_EQ(refusal(directory, [&] { Classifier(model, {}); }),
            "its graph gives logits f32[B,2]: expected f32[B,1], one for each label");
}

TEST(Classifier, IsRefusedWhenItsGraphReadsMoreThanTexts) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  io::Model model =
      io::load_model(directory, {.inputs = {"input_ids", "attention_mask", "token_type_ids"}});
  EXPECT_NO_THROW(Classifier(model, {})) << "which text of a pair a token belongs to";
  model.graph.rename(model.graph.at("token_type_ids"), "colours");
  EXPECT_EQ(refusal(directory, [&] { Classifier(model, {}); }),
            "its graph has the input \"colours\", which is not made from texts");
}

TEST(Classifier, IsRefusedPaddedWhenItsGraphHasNoMask) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  const io::Model model = io::load_model(directory, {.inputs = {"input_ids"}});
  EXPECT_NO_THROW(Classifier(model, {}));
  EXPECT_EQ(refusal(directory, [&] { Classifier(model, {.is_padded = true}); }),
            "its graph has no input attention_mask, so that padding would change its answers");
}

}  // namespace
}  // namespace lathe::train
