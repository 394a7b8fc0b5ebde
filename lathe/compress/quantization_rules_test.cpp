#include "lathe/compress/quantization_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/range_rule.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using By = QuantizationRule::By;

TEST(QuantizationRules, AreReadInTheOrderTheyAreWritten) {
  const std::vector<QuantizationRule> rules = parse_quantization_rules(R"(
[default]
weights = "int:4,channel"
[[rule]]
by = "regex"
match = "layer\\.0\\."
weights = "int:8,channel"
inputs = "float"
[[rule]]
by = "name"
match = "classifier"
bias = "fixed:8,4"
outputs = "fixed:8,4"
[[rule]]
by = "type"
match = "attention"
attention = "mxint:8"
attention_weights = "int:8,asymmetric"
embeddings = "nf4"
)",
                                                                       "r.toml");
  ASSERT_EQ(rules.size(), 4u);
  EXPECT_EQ(rules[0].by, By::Regex);
  EXPECT_EQ(rules[0].match, "layer\\.0\\.");
  EXPECT_EQ(rules[0].place, "r.toml:4");
  EXPECT_THAT(rules[0].formats, ElementsAre(Pair(TensorRole::Weights, "int:8,channel"),
                                            Pair(TensorRole::Inputs, "float")));
  EXPECT_EQ(rules[1].by, By::Name);
  EXPECT_THAT(rules[1].formats, ElementsAre(Pair(TensorRole::Bias, "fixed:8,4"),
                                            Pair(TensorRole::Outputs, "fixed:8,4")));
  EXPECT_EQ(rules[2].by, By::Type);
  EXPECT_THAT(
      rules[2].formats,
      ElementsAre(Pair(TensorRole::Embeddings, "nf4"), Pair(TensorRole::Attention, "mxint:8"),
                  Pair(TensorRole::AttentionWeights, "int:8,asymmetric")));
  EXPECT_EQ(rules[3].by, By::Any);
  EXPECT_EQ(rules[3].place, "r.toml:2");
}

TEST(QuantizationRules, MatchByTypeWholeNameOrPattern) {
  const QuantizationRule type{.by = By::Type, .match = "linear"};
  EXPECT_TRUE(type.matches("linear", "up"));
  EXPECT_FALSE(type.matches("relu", "linear"));
  const QuantizationRule named{.by = By::Name, .match = "up"};
  EXPECT_TRUE(named.matches("linear", "up"));
  EXPECT_FALSE(named.matches("linear", "up.1"));
  const QuantizationRule pattern{.by = By::Regex, .match = "layer\\.[01]\\."};
  EXPECT_TRUE(pattern.matches("linear", "encoder.layer.1.dense"));
  EXPECT_FALSE(pattern.matches("linear", "encoder.layer.12.dense"));
  EXPECT_TRUE(QuantizationRule{}.matches("relu", "anything"));
}

std::string refusal(const std::string& text) {
  return error_text([&] { parse_quantization_rules(text, "r.toml"); });
}

TEST(QuantizationRules, NameTheFileTheLineAndWhatIsWrong) {
  EXPECT_EQ(refusal("\n[[rule]]\nby = \"type\"\nmatch = \"linear\"\nwieghts = \"int:8\"\n"),
            "r.toml:5: unknown key \"wieghts\"; known: weights, bias, inputs, outputs, embeddings, "
            "attention, attention_weights, by, match\nhint: did you mean \"weights\"?");
  EXPECT_EQ(refusal("[[rule]]\nby = \"typ\"\nmatch = \"linear\"\n"),
            "r.toml:2: unknown by \"typ\"; known: type, name, regex\nhint: did you mean \"type\"?");
  EXPECT_EQ(refusal("[[rule]]\nby = 3\n"), "r.toml:2: by must be a text: type, name or regex");
  EXPECT_EQ(refusal("[[rule]]\nby = \"regex\"\nmatch = \"(\"\n"),
            "r.toml:1: \"(\" is no pattern: missing ): (");
  EXPECT_EQ(refusal("[[rule]]\nmatch = \"up\"\n"),
            "r.toml:1: a rule needs by = \"type\", \"name\" or \"regex\"");
  EXPECT_EQ(refusal("[[rule]]\nby = \"name\"\n"), "r.toml:1: a rule needs match");
  EXPECT_EQ(refusal("\n\n[default]\nweights = \"int:99\"\n"),
            "r.toml:4: weights: format \"int:99\": width must be between 2 and 16, got 99");
  EXPECT_EQ(refusal("[default]\ninputs = \"itn:8\"\n").substr(0, 53),
            "r.toml:2: inputs: unknown format family \"itn\"; known:");
  EXPECT_EQ(refusal("[default]\nweights = 8\n"), "r.toml:2: weights must be a text");
  EXPECT_EQ(refusal("[default]\nby = \"type\"\n").substr(0, 29), "r.toml:2: unknown key \"by\"; k");
  EXPECT_EQ(refusal("[rule]\nby = \"type\"\n"), "r.toml:1: rules are a list: expected [[rule]]");
  EXPECT_EQ(refusal("default = 3\n"), "r.toml:1: expected [default], a table");
  EXPECT_EQ(
      refusal("[[rules]]\n"),
      "r.toml:1: unknown key \"rules\"; known: rule, default, by\nhint: did you mean \"rule\"?");
  EXPECT_EQ(refusal(""), "r.toml: holds no rule");
  EXPECT_TRUE(refusal("\n[[rule]\n").starts_with("r.toml:2: ")) << refusal("\n[[rule]\n");
}

TEST(QuantizationRules, RefuseFormatsThatAttentionsWeightsCannotHave) {
  EXPECT_EQ(refusal("[default]\nattention_weights = \"bfp:8,block=2x8\"\n"),
            "r.toml:2: attention_weights: attention: bfp:8,block=2x8 has a scale for several rows, "
            "but each query's weights are rounded alone");
}

TEST(RangeRule, IsReadFromText) {
  EXPECT_EQ(parse_range_rule("minmax").method, RangeRule::Method::Extremes);
  EXPECT_EQ(parse_range_rule("mse").method, RangeRule::Method::LeastError);
  EXPECT_EQ(parse_range_rule("percentile").percentile, 0.9999);
  EXPECT_EQ(parse_range_rule("percentile=0.9").percentile, 0.9);
  const auto refused = [](const char* text) { return error_text([&] { parse_range_rule(text); }); };
  EXPECT_EQ(refused("percentile=2"), "percentile=2: expected percentile=P with 0 < P <= 1");
  EXPECT_EQ(refused("percentile="), "percentile=: expected percentile=P with 0 < P <= 1");
  EXPECT_EQ(refused("percentil"),
            "unknown range \"percentil\"; known: minmax, percentile, mse\nhint: did you mean "
            "\"percentile\"?");
}

}  // namespace
}  // namespace lathe::compress
