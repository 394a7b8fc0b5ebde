#include "lathe/compress/pruning/prune_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/testing/two_layers.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/text_source.h"

namespace lathe::compress {
namespace {

std::int64_t zeros(const Tensor& tensor) {
  return std::ranges::count(tensor.data<float>(), 0.0f);
}

PruningRule named(const char* pattern, PruningSettings settings) {
  return {
      .by = MatchBy::Regex, .match = pattern, .settings = std::move(settings), .place = "r.toml:1"};
}

class PruneModel : public testing::Test {
 protected:
  PruneModel() : model_(io::load_model(io::write_tiny_bert(scratch_, "m"))) {}

  PruneResult prune(const PruningRequest& request, std::uint64_t seed = 0) {
    return prune_model(model_, {.request = request, .seed = seed}, nullptr, {});
  }
  std::int64_t zeros_of(const std::string& state) const { return zeros(model_.state.at(state)); }

  io::ScratchDirectory scratch_;
  io::Model model_;
};

TEST_F(PruneModel, PrunesEveryWeightOfALayerToTheCount) {
  const PruneResult result = prune({.settings = {.sparsity = 0.7, .method = "l1"}});
  ASSERT_EQ(result.units.size(), 8u);
  for (const UnitReport& unit : result.units) {
    EXPECT_EQ(unit.pruned, share_of(0.7, unit.granules)) << unit.unit;
    EXPECT_EQ(unit.zeros, zeros_of(unit.unit)) << unit.unit;
    EXPECT_EQ(zeros(model_.state.at(unit.unit + ".mask")), unit.zeros);
  }
  EXPECT_FALSE(model_.state.contains("bert.embeddings.word_embeddings.weight.mask"));
}

TEST_F(PruneModel, PrunesAllTogetherToTheCountUnderAGlobalScope) {
  const PruneResult result = prune({.settings = {.sparsity = 0.3, .scope = PruningScope::Global}});
  std::int64_t granules = 0, pruned = 0;
  for (const UnitReport& unit : result.units) {
    granules += unit.granules;
    pruned += unit.pruned;
  }
  EXPECT_EQ(pruned, share_of(0.3, granules));
}

TEST_F(PruneModel, FollowsTheFirstRuleThatMatches) {
  const PruneResult result =
      prune({.rules = {named("classifier", {.sparsity = 0}), named("attention", {.sparsity = 0.5}),
                       named("nobody", {.sparsity = 0.5})},
             .settings = {.sparsity = 0.25}});
  EXPECT_EQ(zeros_of("classifier.weight"), 0);
  EXPECT_FALSE(model_.state.contains("classifier.weight.mask"));
  EXPECT_EQ(zeros_of("bert.encoder.layer.0.attention.self.key.weight"), 32);
  EXPECT_EQ(zeros_of("bert.pooler.dense.weight"), 16);
  EXPECT_EQ(result.unused_rules, std::vector<std::string>{"r.toml:1: nobody"});
}

TEST_F(PruneModel, TakesTablesWhenAskedOrNamed) {
  prune({.rules = {named("word_embeddings", {})}, .settings = {.sparsity = 0.5}});
  EXPECT_EQ(zeros_of("bert.embeddings.word_embeddings.weight"), 80);
  EXPECT_FALSE(model_.state.contains("bert.embeddings.position_embeddings.weight.mask"));
  prune({.settings = {.sparsity = 0.5}, .embeddings = true});
  EXPECT_EQ(zeros_of("bert.embeddings.position_embeddings.weight"), 64);
}

TEST_F(PruneModel, CountsWhatWasPrunedBefore) {
  prune({.settings = {.sparsity = 0.5, .method = "l1"}});
  const State first = find_masks(model_.graph, model_.state);
  // A random choice takes what is out before anything else.
  prune({.settings = {.sparsity = 0.6, .method = "random"}}, 3);
  const State second = find_masks(model_.graph, model_.state);
  for (const auto& [name, mask] : second) {
    EXPECT_EQ(zeros(mask), share_of(0.6, mask.num_elements())) << name;
    for (std::int64_t i = 0; i < mask.num_elements(); ++i)
      EXPECT_LE(mask.at(i), first.at(name).at(i));
  }
}

TEST_F(PruneModel, PrunesHeadsAndNeuronsSideBySide) {
  const PruneResult result =
      prune({.rules = {named("attention", {.granularity = parse_granularity("head")}),
                       named("intermediate|output", {.granularity = parse_granularity("neuron")})},
             .settings = {.sparsity = 0.5}});
  const std::string layer = "bert.encoder.layer.0.";
  EXPECT_EQ(zeros_of(layer + "attention.self.query.weight"), 32);
  EXPECT_EQ(zeros_of(layer + "attention.self.query.bias"), 4);
  EXPECT_EQ(zeros_of(layer + "attention.output.dense.weight"), 32);
  EXPECT_EQ(zeros_of(layer + "intermediate.dense.weight"), 64);
  EXPECT_EQ(zeros_of(layer + "intermediate.dense.bias"), 8);
  EXPECT_EQ(zeros_of(layer + "output.dense.weight"), 64);
  // Neither a head nor a neuron of the feed-forward part.
  EXPECT_EQ(zeros_of("bert.pooler.dense.weight"), 32);
  ASSERT_EQ(result.units.size(), 4u);
  EXPECT_EQ(result.units[0].unit, layer + "attention.self.attention");
  EXPECT_EQ(result.units[0].pruned, 1);
}

TEST_F(PruneModel, RepeatsARandomChoiceByItsSeed) {
  const io::Model plain = model_;
  prune({.settings = {.sparsity = 0.5, .method = "random"}}, 1);
  const State first = model_.state;
  model_ = plain;
  prune({.settings = {.sparsity = 0.5, .method = "random"}}, 1);
  for (const auto& [name, tensor] : first) EXPECT_TRUE(identical(tensor, model_.state.at(name)));
  model_ = plain;
  prune({.settings = {.sparsity = 0.5, .method = "random"}}, 2);
  EXPECT_FALSE(identical(first.at("classifier.weight"), model_.state.at("classifier.weight")));
}

TEST_F(PruneModel, NamesWhatCannotBeDone) {
  const auto error_of = [&](const PruningRequest& request) {
    return error_text([&] { prune(request); });
  };
  EXPECT_EQ(error_of({}), "nothing to prune: give a sparsity, or rules that match a layer");
  EXPECT_EQ(error_of({.settings = {.sparsity = 0.5, .method = "wanda"}}),
            "method wanda: looks at data, and there is none\nhint: calibrate D gives it some");
  EXPECT_EQ(error_of({.settings = {.sparsity = 0.5,
                                   .granularity = parse_granularity("row"),
                                   .scope = PruningScope::Row}}),
            "scope row: a row holds one granule of granularity row at most: expected local or "
            "global");
  EXPECT_EQ(error_of({.settings = {.granularity = parse_granularity("3:7")}}),
            "layer \"bert.encoder.layer.0.attention.self.query\": 3:7 does not divide its 8 "
            "inputs");
  model_.state.at("classifier.weight").mutable_data<float>()[3] =
      std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of({.settings = {.sparsity = 0.5}}),
            "state \"classifier.weight\": element 3 is nan, which has no rank among weights");
}

// The definitions, written once more: by rows, the least |w| * norm of the feature go.
TEST(PruneOnData, WandaLooksAtWhatALayerReads) {
  io::Model model = two_layers();
  const io::Model plain = model;
  prune_model(model, {.request = {.settings = {.sparsity = 0.5, .method = "wanda"}}}, &texts(), {});
  const std::span<const float> table = plain.state.at("table").data<float>();
  std::vector<double> norms(3, 0.0);
  for (const std::int32_t id : text_ids())
    for (std::size_t c = 0; c < 3; ++c)
      norms[c] += std::pow(double{table[static_cast<std::size_t>(id) * 3 + c]}, 2);
  const std::span<const float> before = plain.state.at("w").data<float>();
  const std::span<const float> after = model.state.at("w").data<float>();
  // Half of 3 columns: 2, 1, 2 and 1, so that 6 of 12 go.
  const std::vector<std::size_t> counts{2, 1, 2, 1};
  for (std::size_t r = 0; r < 4; ++r) {
    std::vector<std::size_t> order{0, 1, 2};
    std::ranges::stable_sort(order, {}, [&](std::size_t c) {
      return std::fabs(double{before[r * 3 + c]}) * std::sqrt(norms[c]);
    });
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(after[r * 3 + order[i]] == 0, i < counts[r]) << r << " " << i;
  }
}

TEST(PruneOnData, RowsThatAreNeverLookedUpGo) {
  io::Model model = two_layers();
  train::TokenizedTexts some({.ids = {0, 1, 4, 0}, .offsets = {0, 3, 4}, .labels = {0, 1}}, {});
  const PruneResult result = prune_model(
      model, {.request = {.settings = {.granularity = parse_granularity("vocabulary")}}}, &some,
      {});
  ASSERT_EQ(result.units.size(), 1u);
  EXPECT_EQ(result.units[0].pruned, 2);
  const std::span<const float> table = model.state.at("table").data<float>();
  for (std::size_t row = 0; row < 5; ++row)
    EXPECT_EQ(table[row * 3] == 0, row == 2 || row == 3) << row;
}

TEST(PruneOnData, RefusesALayerWithoutRows) {
  io::Model model;
  model.graph = parse_graph(R"(
    x = input() : f32[B,3,8,8]
    w = state() : f32[4,3,3,3]
    y = conv2d(x, w)
    output logits <- y
  )");
  model.state["w"] = Tensor(DType::F32, {4, 3, 3, 3});
  EXPECT_EQ(error_text([&] {
              prune_model(model, {.request = {.settings = {.sparsity = 0.5, .method = "wanda"}}},
                          &texts(), {});
            }),
            "layer \"y\": wanda needs rows that are multiplied with its weight, and a conv2d has "
            "none\nhint: leave it out by a rule (sparsity = 0), or use another method");
}

}  // namespace
}  // namespace lathe::compress
