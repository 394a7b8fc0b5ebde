#include "lathe/experiment/prune.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/experiment/prune_report.h"
#include "lathe/experiment/quantize.h"
#include "lathe/experiment/testing/opinions.h"
#include "lathe/ops/evaluate_parameter.h"

namespace lathe::experiment {
namespace {

class PruneTest : public testing::Test {
 protected:
  PruneTest() : model_(io::load_model(io::write_tiny_bert(scratch_, "m"))) {}

  io::ScratchDirectory scratch_;
  io::Model model_;
};

TEST_F(PruneTest, PrunesByWhatTheOptionsSay) {
  const Pruned pruned = prune(model_, {.sparsity = 0.5, .granularity = "1x4"}, {});
  const PruneTotal total = prune_total(pruned.result);
  EXPECT_EQ(total.elements, 592);  // of 8 weights
  EXPECT_EQ(total.zeros, 296);
  EXPECT_EQ(total.granules, 148);
  EXPECT_EQ(prune_table(pruned.result).rows().back(),
            (std::vector<std::string>{"all", "-", "-", "-", "148", "74", "0.5000"}));
}

TEST_F(PruneTest, ReadsRulesFromAFile) {
  scratch_.write("r.toml", "[[rule]]\nby = \"name\"\nmatch = \"classifier\"\nsparsity = 0\n");
  const Pruned pruned =
      prune(model_, {.sparsity = 0.5, .rules = (scratch_ / "r.toml").string()}, {});
  EXPECT_EQ(pruned.result.left.back(), "classifier.weight");
  EXPECT_EQ(pruned.result.units.size(), 7u);
}

TEST_F(PruneTest, LooksAtDataThatItIsGiven) {
  const std::string data = write_opinions(scratch_, "data");
  const Pruned pruned =
      prune(model_, {.method = "sparsegpt", .granularity = "2:4", .calibrate = data}, {});
  EXPECT_EQ(prune_total(pruned.result).zeros, 296);
  const Pruned vocabulary = prune(model_, {.granularity = "vocabulary", .calibrate = data}, {});
  ASSERT_EQ(vocabulary.result.units.size(), 1u);
  EXPECT_EQ(vocabulary.result.units[0].method, "lookups");
  // The tokens that a tokenizer writes itself stay, whether or not a text holds them.
  const std::span<const float> table =
      vocabulary.model.state.at("bert.embeddings.word_embeddings.weight").data<float>();
  for (std::size_t row = 0; row < 5; ++row) EXPECT_NE(table[row * 8], 0) << row;
}

TEST_F(PruneTest, PacksAPackedModelAgain) {
  for (const char* const format : {"int:4,channel", "binary:scaled"}) {
    io::Model packed = quantize(model_, {.weights = format}, nullptr, {}).model;
    compress::pack_model(packed);
    const Pruned pruned = prune(packed, {.sparsity = 0.5}, {});
    EXPECT_TRUE(pruned.model.graph.nodes_of("quantize").empty()) << format;
    EXPECT_FALSE(pruned.model.masters.empty());
    std::int64_t zeros = 0;
    for (const NodeId linear : pruned.model.graph.nodes_of("linear")) {
      const Tensor weight = ops::evaluate_parameter(pruned.model.graph, pruned.model.state,
                                                    pruned.model.graph.input(linear, 1));
      const std::int64_t here = std::ranges::count(weight.data<float>(), 0.0f);
      // Small numbers may round to zero as well.
      EXPECT_GE(here, weight.num_elements() / 2) << pruned.model.graph.name(linear);
      zeros += here;
    }
    if (std::string(format) == "binary:scaled") {
      EXPECT_EQ(zeros, 296);
    }
  }
}

TEST_F(PruneTest, NamesWhatIsWrongBeforeItReadsAnything) {
  const auto error_of = [](const PruneOptions& options) {
    return error_text([&] { to_request(options); });
  };
  EXPECT_EQ(error_of({.sparsity = 70}), "sparsity 70: expected a share of the weights, 0 to 1");
  EXPECT_EQ(error_of({.method = "wnda", .sparsity = 0.5}),
            "unknown method \"wnda\"; known: l1, lamp, lookups, movement, random, sparsegpt, "
            "wanda\nhint: did you "
            "mean \"wanda\"?");
  EXPECT_EQ(error_of({.sparsity = 0.7, .granularity = "2:4"}),
            "sparsity 0.7: 2:4 prunes 0.5 of a weight at most");
  EXPECT_EQ(error_of({.sparsity = 0.7, .activations = 1}),
            "activations 1: expected a share of each row, 0 or more and below 1");
}

}  // namespace
}  // namespace lathe::experiment
