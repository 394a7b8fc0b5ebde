#include "lathe/search/candidate_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/read_data.h"
#include "lathe/train/make_source.h"

namespace lathe::search {
namespace {

// One layer of 8 features: tables of 50 + 512 + 2 rows, and in the encoder, pooler and classifier
// matrices of 4 * 64 + 2 * 128 + 64 + 16 = 592 weights.
io::Model small_model() {
  return io::load_model("bert-tiny", {.task = "classify",
                                      .num_labels = 2,
                                      .config = {{"num_hidden_layers", std::int64_t{1}},
                                                 {"hidden_size", std::int64_t{8}},
                                                 {"num_attention_heads", std::int64_t{2}},
                                                 {"intermediate_size", std::int64_t{16}},
                                                 {"vocab_size", std::int64_t{50}}},
                                      .seed = 0});
}

TEST(CandidateCosts, CountWhatIsStoredAndComputed) {
  const io::Model base = small_model();
  const CandidateCosts costs(base, 10);
  const Costs plain = costs.known({});
  constexpr double kWeights = 592, kTables = (50 + 512 + 2) * 8;
  constexpr double kBiases = 4 * 8 + 16 + 8 + 8 + 2, kNorms = 3 * 2 * 8;
  EXPECT_EQ(plain.at("parameters"), kWeights + kTables + kBiases + kNorms);
  EXPECT_EQ(plain.at("bytes"), 4 * plain.at("parameters"));
  EXPECT_EQ(plain.at("weight-bits"), 32);
  // Pooler and classifier read one token.
  constexpr double kProducts = (4 * 64 + 2 * 128) * 10 + 64 + 16;
  EXPECT_EQ(plain.at("bit-operations"), kProducts * 32 * 32);

  Candidate half;
  half.formats[".*"] = {{compress::TensorRole::Weights, "fixed:8,4"},
                        {compress::TensorRole::Inputs, "fixed:4,2"}};
  half.pruning[".*"].sparsity = 0.5;
  const Costs small = costs.known(half);
  EXPECT_EQ(small.at("parameters"), plain.at("parameters") - kWeights / 2);
  EXPECT_EQ(small.at("weight-bits"), 8);
  EXPECT_EQ(small.at("data-bits"), 4);
  EXPECT_EQ(small.at("bits"), 6);
  EXPECT_EQ(small.at("bit-operations"), kProducts / 2 * 8 * 4);
  EXPECT_EQ(small.at("bytes"), plain.at("bytes") - 4 * kWeights + kWeights * (4 + 1) / 8);
  EXPECT_EQ(small.at("flops"), plain.at("flops"));

  // Scales of rows stay, however many of a row's weights are gone.
  half.formats[".*"][compress::TensorRole::Weights] = "int:8,channel";
  constexpr double kRows = 4 * 8 + 16 + 8 + 8 + 2;
  EXPECT_EQ(costs.known(half).at("bytes"),
            plain.at("bytes") - 4 * kWeights + kWeights * (4 + 1) / 8 + 4 * kRows);
  // A mask is stored, though it hides less than it takes.
  half.formats[".*"][compress::TensorRole::Weights] = "binary";
  EXPECT_EQ(costs.known(half).at("bytes"),
            plain.at("bytes") - 4 * kWeights + kWeights * (0.5 + 1) / 8);
}

TEST(CandidateCosts, CountTheWindowsOfAnImage) {
  const io::Model base = io::load_model("cnn:3x8x8,c4k3p1,m2,2", {.task = "classify", .seed = 0});
  constexpr double kProducts = 64 * 4 * 27 + 4 * 16 * 2;
  EXPECT_EQ(CandidateCosts(base, 1).known({}).at("bit-operations"), kProducts * 32 * 32);
}

TEST(CandidateCosts, OfAWiderModelAreMore) {
  const io::Model base = small_model();
  const CandidateCosts costs(base, 10);
  const Candidate wide{.architecture = {{"hidden_size", std::int64_t{16}}}};
  for (const auto& [name, cost] : costs.known(wide))
    if (!name.ends_with("bits")) {
      EXPECT_GT(cost, costs.known({}).at(name));
    }
}

TEST(CandidateCosts, MeasuresAnExample) {
  EXPECT_GT(measure_cost("latency", small_model(), {}, 10, nullptr, {}, {}), 0);
}

TEST(CandidateCosts, MeasuresADesignInHardware) {
  constexpr const char* kData = "reviews:train=8,test=8";
  io::Model model =
      experiment::load_with_tokenizer("bert-tiny", "", kData,
                                      {.task = "classify",
                                       .num_labels = 2,
                                       .config = {{"num_hidden_layers", std::int64_t{1}},
                                                  {"hidden_size", std::int64_t{8}},
                                                  {"num_attention_heads", std::int64_t{2}},
                                                  {"intermediate_size", std::int64_t{16}},
                                                  {"max_position_embeddings", std::int64_t{16}}},
                                       .seed = 0});
  const data::Dataset rows = experiment::read_examples(model, kData, "train", 8);
  const auto examples = train::make_evaluation_source(model, rows, {.length = 10}, nullptr);
  Candidate narrow, wide;
  narrow.formats[".*"] = {{compress::TensorRole::Weights, "fixed:4,3"}};
  wide.formats[".*"] = {{compress::TensorRole::Weights, "fixed:8,7"}};
  const auto cost = [&](const char* kind, const Candidate& candidate) {
    return measure_cost(kind, model, candidate, 10, examples.get(), {}, {});
  };
  EXPECT_GT(cost("lut", wide), 0);
  EXPECT_GT(cost("cycles", wide), 0);
  EXPECT_LE(cost("dsp", narrow), cost("dsp", wide));
  EXPECT_THAT(error_text([&] {
                Candidate wrong;
                wrong.formats[".*"] = {{compress::TensorRole::Weights, "nf4"}};
                cost("lut", wrong);
              }),
              testing::HasSubstr("nf4"));
}

TEST(CandidateCosts, HaveNames) {
  EXPECT_EQ(error_text([] { find_cost_kind("latancy"); }).substr(0, 22),
            "unknown cost \"latancy\"");
}

}  // namespace
}  // namespace lathe::search
