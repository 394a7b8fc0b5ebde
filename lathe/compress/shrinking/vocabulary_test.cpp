#include "lathe/compress/shrinking/vocabulary.h"

#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/make_source.h"

namespace lathe::compress {
namespace {

// The logits of a text, by the model's own tokenizer.
Tensor answer(const io::Model& model, const std::string& text) {
  const std::vector<std::int32_t> ids = train::load_tokenizer(model)->encode(text);
  const auto length = static_cast<std::int64_t>(ids.size());
  const Feed all{{"input_ids", Tensor::from<std::int32_t>({1, length}, std::span(ids))},
                 {"attention_mask",
                  Tensor::from<std::int32_t>(
                      {1, length}, std::span<const std::int32_t>(std::vector(ids.size(), 1)))},
                 {"labels", Tensor(DType::I32, {1})}};
  Feed feed;
  for (const NodeId id : model.graph.nodes_of("input"))
    feed[model.graph.name(id)] = all.at(model.graph.name(id));
  return engine::make_executor(model.graph, model.state, {.device = "reference"})
      ->run(feed)
      .at("logits");
}

class ShrinkVocabulary : public testing::Test {
 protected:
  ShrinkVocabulary() : model_(io::load_model(io::write_tiny_bert(scratch_, "m"))) {}

  std::vector<std::int32_t> ids_of(const std::string& text) const {
    return train::load_tokenizer(model_)->encode(text);
  }

  io::ScratchDirectory scratch_;
  io::Model model_;
};

constexpr const char* kText = "the film, a very fine plot.";

TEST_F(ShrinkVocabulary, KeepsAnswersOfTextsItKnows) {
  const Tensor before = answer(model_, kText);
  const VocabularyReport report = shrink_vocabulary(model_, ids_of(kText));
  // 5 special tokens, 6 words, a comma and a full stop.
  EXPECT_EQ(report.rows_before, 20);
  EXPECT_EQ(report.rows_after, 13);
  EXPECT_EQ(report.bytes_before - report.bytes_after, 7 * 8 * 4);
  EXPECT_TRUE(identical(answer(model_, kText), before));
  EXPECT_EQ(model_.tokenizer->vocabulary_size(), 13);
  EXPECT_EQ(std::get<std::int64_t>(model_.config.at("vocab_size")), 13);
}

TEST_F(ShrinkVocabulary, IsSavedWithItsOwnTokenizer) {
  const Tensor before = answer(model_, kText);
  // What describes the tokenizer of before is not copied.
  scratch_.write("m/special_tokens_map.json", "{}");
  shrink_vocabulary(model_, ids_of(kText));
  io::write_huggingface(scratch_ / "h", model_);
  io::write_checkpoint(scratch_ / "c", model_);
  for (const char* name : {"h", "c"}) {
    const io::Model loaded = io::load_model((scratch_ / name).string());
    EXPECT_TRUE(identical(answer(loaded, kText), before)) << name;
    EXPECT_FALSE(std::filesystem::exists(scratch_ / name / "special_tokens_map.json")) << name;
  }
}

TEST_F(ShrinkVocabulary, TellsWhichIdFillsPaddedRows) {
  State weights = io::tiny_weights();
  io::Model model = io::load_model(io::write_tiny_bert(
      scratch_, "p", weights,
      R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"],
          "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 20,
          "intermediate_size": 16, "max_position_embeddings": 16, "pad_token_id": 19})"));
  std::string vocabulary;
  for (const char* token :
       {"a",    "the", "film", "fine", "poor", "very",  "not",   "but",   "plot",   "act",
        "##or", "##s", ".",    ",",    "!",    "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[PAD]"})
    vocabulary += std::string(token) + "\n";
  scratch_.write("p/vocab.txt", vocabulary);
  shrink_vocabulary(model, {0, 2});
  EXPECT_EQ(std::get<std::int64_t>(model.config.at("pad_token_id")), 6);
}

TEST_F(ShrinkVocabulary, TakesThePredictorOfTokensAlong) {
  for (const bool is_tied : {true, false}) {
    io::Model model = io::load_model("bert-tiny", {.task = "mlm",
                                                   .inputs = {"input_ids"},
                                                   .config = {{"vocab_size", std::int64_t{20}},
                                                              {"hidden_size", std::int64_t{8}},
                                                              {"tie_word_embeddings", is_tied}}});
    model.tokenizer = io::tiny_tokenizer();
    const Tensor before = answer(model, "a film");
    shrink_vocabulary(model, {5, 7});
    const Tensor after = answer(model, "a film");
    EXPECT_EQ(after.dims(), (std::vector<std::int64_t>{1, 4, 7}));
    const std::int64_t kept[] = {0, 1, 2, 3, 4, 5, 7};
    for (std::int64_t token = 0; token < 4; ++token)
      for (std::int64_t i = 0; i < 7; ++i)
        EXPECT_EQ(after.at(token * 7 + i), before.at(token * 20 + kept[i]));
  }
}

TEST_F(ShrinkVocabulary, CutsRoundedAndPackedTables) {
  for (const char* format : {"int:4,channel", "int:8", "mxint:8"}) {
    io::Model model = model_;
    insert_quantizers(model.graph, model.state,
                      {{.by = QuantizationRule::By::Type,
                        .match = "embedding",
                        .formats = {{TensorRole::Embeddings, format}}}});
    set_parameter_scales(model.graph, model.state, {});
    pack_model(model);
    const Tensor before = answer(model, kText);
    shrink_vocabulary(model, ids_of(kText));
    EXPECT_TRUE(identical(answer(model, kText), before)) << format;
    EXPECT_FALSE(model.graph.nodes_of("decode").empty()) << format;
  }
}

TEST_F(ShrinkVocabulary, TakesWhatAMaskLeaves) {
  EXPECT_EQ(unmasked_tokens(model_).size(), 20u);
  Tensor mask(DType::F32, {20, 8});
  for (std::size_t i = 0; i < 160; ++i) mask.mutable_data<float>()[i] = i / 8 == 9 ? 0 : 1;
  insert_masks(model_.graph, model_.state, {{"bert.embeddings.word_embeddings.weight", mask}});
  const std::vector<std::int32_t> left = unmasked_tokens(model_);
  EXPECT_EQ(left.size(), 19u);
  EXPECT_EQ(left[9], 10);
  shrink_vocabulary(model_, left);
  EXPECT_FALSE(model_.state.contains("bert.embeddings.word_embeddings.weight.mask"));
}

TEST_F(ShrinkVocabulary, SaysWhatItCosts) {
  ThreadPool pool(1);
  const auto before = train::load_tokenizer(model_);
  const data::Dataset seen{.examples = {{"the film"}, {"a fine film"}}, .label_names = {}};
  const std::vector<std::int64_t> counts = count_tokens(*before, seen, pool);
  std::vector<std::int32_t> used;
  for (std::size_t id = 0; id < counts.size(); ++id)
    if (counts[id] > 0) used.push_back(static_cast<std::int32_t>(id));
  shrink_vocabulary(model_, used);
  const data::Dataset others{.examples = {{"the film"}, {"the fine actor, bah"}},
                             .label_names = {}};
  const UnknownTokens cost = compare_tokenizers(*before, *model_.tokenizer, others, pool);
  EXPECT_EQ(cost.tokens_before, 8);  // actor is act ##or; bah is unknown
  EXPECT_EQ(cost.tokens_after, 7);
  EXPECT_EQ(cost.unknown_before, 1);
  EXPECT_EQ(cost.unknown_after, 3);
  EXPECT_EQ(cost.texts, 2);
  EXPECT_EQ(cost.changed_texts, 1);
  EXPECT_DOUBLE_EQ(cost.share(), 2.0 / 7);
}

TEST_F(ShrinkVocabulary, RefusesInOneLine) {
  EXPECT_EQ(error_text([&] { shrink_vocabulary(model_, {20}); }),
            "token id 20 is outside the vocabulary of 20 tokens");
  io::Model mlp = io::load_model("mlp:3,2");
  EXPECT_EQ(error_text([&] { shrink_vocabulary(mlp, {0}); }),
            error_text([&] { train::load_tokenizer(mlp); }));
}

}  // namespace
}  // namespace lathe::compress
