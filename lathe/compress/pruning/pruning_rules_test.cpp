#include "lathe/compress/pruning/pruning_rules.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

std::string error_of(std::string_view text) {
  return error_text([&] { parse_pruning_rules(text, "r.toml"); });
}

TEST(PruningRules, AreReadInTheirOrder) {
  const std::vector<PruningRule> rules = parse_pruning_rules(R"(
[default]
method = "wanda"
[[rule]]
by = "regex"
match = "layer\\.0\\."
sparsity = 0.8
granularity = "1x16"
scope = "global"
[[rule]]
by = "name"
match = "classifier"
sparsity = 0
)",
                                                             "r.toml");
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].by, MatchBy::Regex);
  EXPECT_EQ(rules[0].place, "r.toml:4");
  EXPECT_EQ(rules[0].settings.sparsity, 0.8);
  EXPECT_EQ(rules[0].settings.granularity, parse_granularity("1x16"));
  EXPECT_EQ(rules[0].settings.scope, PruningScope::Global);
  EXPECT_EQ(rules[1].settings.sparsity, 0);
  EXPECT_EQ(rules[2].by, MatchBy::Any);
  EXPECT_EQ(rules[2].settings.method, "wanda");
}

TEST(PruningRules, NameWhatIsWrong) {
  EXPECT_EQ(error_of("[default]\nsparsty = 0.5"),
            "r.toml:2: unknown key \"sparsty\"; known: sparsity, method, granularity, scope, "
            "activations\nhint: did you mean \"sparsity\"?");
  EXPECT_EQ(error_of("[default]\nsparsity = 1.5"),
            "r.toml:1: sparsity 1.5: expected a share of the weights, 0 to 1");
  EXPECT_EQ(error_of("[default]\nmethod = \"wanna\""),
            "r.toml:2: unknown method \"wanna\"; known: l1, lamp, lookups, movement, random, "
            "sparsegpt, wanda"
            "\nhint: did you mean \"wanda\"?");
  EXPECT_EQ(error_of("[default]\nmethod = \"sparsegpt\"\ngranularity = \"head\""),
            "r.toml:1: method sparsegpt: prunes elements and N:M, not granularity head");
  EXPECT_EQ(error_of("[default]\nmethod = \"sparsegpt\"\nscope = \"global\""),
            "r.toml:1: scope global: sparsegpt ranks the weights of some columns of a layer: "
            "expected local");
  EXPECT_EQ(error_of("[default]\nsparsity = \"half\""), "r.toml:2: sparsity must be a number");
  EXPECT_EQ(error_of("[[rule]]\nsparsity = 0.5"),
            "r.toml:1: a rule needs by = \"type\", \"name\" or \"regex\"");
  EXPECT_EQ(error_of("[weights]\nsparsity = 0.5"),
            "r.toml:1: unknown key \"weights\"; known: rule, default, weight, activation"
            "\nhint: did you mean \"weight\"?");
  EXPECT_EQ(error_of(""), "r.toml: holds no rule");
}

TEST(PruningRules, LetNToMBringItsOwnSparsity) {
  const PruningSettings options{.sparsity = 0.7, .method = "l1"};
  const PruningSettings half = filled({.granularity = parse_granularity("2:4")}, options);
  EXPECT_FALSE(half.sparsity.has_value());
  EXPECT_EQ(half.method, "l1");
  EXPECT_EQ(filled({.granularity = parse_granularity("head")}, options).sparsity, 0.7);
}

TEST(MasePruning, KeysMeanARuleForAllLayers) {
  const std::vector<PruningRule> rules = parse_pruning_rules(R"(
[weight]
sparsity = 0.5
method = "l1-norm"
scope = "global"
granularity = "elementwise"
[activation]
sparsity = 0.1
method = "l1-norm"
scope = "local"
granularity = "elementwise"
)",
                                                             "m.toml");
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].by, MatchBy::Any);
  EXPECT_EQ(rules[0].settings, (PruningSettings{.sparsity = 0.5,
                                                .method = "l1",
                                                .granularity = Granularity{},
                                                .scope = PruningScope::Global,
                                                .activations = 0.1}));
}

// In MASE both sections must be there, and this is the one way to leave activations alone.
TEST(MasePruning, TakesRandomActivationsOfSparsityZeroAsNone) {
  const std::vector<PruningRule> rules = parse_pruning_rules(
      "[weight]\nsparsity = 0.5\nmethod = \"random\"\n[activation]\nsparsity = 0.0\nmethod = "
      "\"random\"",
      "m.toml");
  EXPECT_FALSE(rules[0].settings.activations.has_value());
  EXPECT_EQ(rules[0].settings.method, "random");
}

TEST(MasePruning, NamesWhatIsWrong) {
  EXPECT_EQ(error_of("[weight]\nsparsity = 0.5\nmetod = \"random\""),
            "r.toml:1: unknown key of [weight] \"metod\"; known: sparsity, method, scope, "
            "granularity\nhint: did you mean \"method\"?");
  EXPECT_EQ(error_of("[weight]\nsparsity = 0.5\nmethod = \"l1\""),
            "r.toml:1: unknown weight.method \"l1\"; known: l1-norm, random");
  EXPECT_EQ(error_of("[weight]\nsparsity = 0.5\ngranularity = \"channel\""),
            "r.toml:1: unknown weight.granularity \"channel\"; known: elementwise");
  EXPECT_EQ(error_of("[weight]\nmethod = \"random\""),
            "r.toml:1: weight.sparsity is missing: expected a number, 0 to 1");
  EXPECT_EQ(error_of("[activation]\nsparsity = 0.5\nmethod = \"random\""),
            "r.toml:1: activation.method random: would drop other inputs in every run: expected "
            "l1-norm");
  EXPECT_EQ(error_of("[activation]\nsparsity = 0.5\nmethod = \"l1-norm\"\nscope = \"global\""),
            "r.toml:1: activation.scope global: each row is ranked by itself: expected local");
  EXPECT_EQ(error_of("[weight]\nsparsity = 0.5\n[activations]\nsparsity = 0.0"),
            "r.toml:3: unknown key \"activations\"; known: weight, activation\nhint: did you mean "
            "\"activation\"?");
}

}  // namespace
}  // namespace lathe::compress
