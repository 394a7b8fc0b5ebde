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
            "r.toml:2: unknown key \"wieghts\"; known: weights, bias, inputs, outputs, embeddings, "
            "attention, attention_weights, by, match\nhint: did you mean \"weights\"?");
  EXPECT_EQ(refusal("[[rule]]\nby = \"typ\"\nmatch = \"linear\"\n"),
            "r.toml:1: unknown by \"typ\"; known: type, name, regex\nhint: did you mean \"type\"?");
  EXPECT_EQ(refusal("[[rule]]\nby = 3\n"), "r.toml:1: by must be a text: type, name or regex");
  EXPECT_EQ(refusal("[[rule]]\nby = \"regex\"\nmatch = \"(\"\n"),
            "r.toml:1: \"(\" is no pattern: missing ): (");
  EXPECT_EQ(refusal("[[rule]]\nmatch = \"up\"\n"),
            "r.toml:1: a rule needs by = \"type\", \"name\" or \"regex\"");
  EXPECT_EQ(refusal("[[rule]]\nby = \"name\"\n"), "r.toml:1: a rule needs match");
  EXPECT_EQ(refusal("\n\n[default]\nweights = \"int:99\"\n"),
            "r.toml:3: weights: format \"int:99\": width must be between 2 and 16, got 99");
  EXPECT_EQ(refusal("[default]\ninputs = \"itn:8\"\n").substr(0, 53),
            "r.toml:1: inputs: unknown format family \"itn\"; known:");
  EXPECT_EQ(refusal("[default]\nweights = 8\n"), "r.toml:1: weights must be a text");
  EXPECT_EQ(refusal("[default]\nby = \"type\"\n").substr(0, 29), "r.toml:1: unknown key \"by\"; k");
  EXPECT_EQ(refusal("[rule]\nby = \"type\"\n"), "r.toml:1: rules are a list: expected [[rule]]");
  EXPECT_EQ(refusal("default = 3\n"), "r.toml:1: expected [default], a table");
  EXPECT_EQ(
      refusal("[[rules]]\n"),
      "r.toml:1: unknown key \"rules\"; known: rule, default, by\nhint: did you mean \"rule\"?");
  EXPECT_EQ(refusal(""), "r.toml: holds no rule");
  EXPECT_TRUE(refusal("\n[[rule]\n").starts_with("r.toml:2: ")) << refusal("\n[[rule]\n");
}

TEST(MaseRules, BecomeOurFormats) {
  const std::vector<QuantizationRule> rules = parse_quantization_rules(R"(
by = "type"
[default.config]
name = "NA"
[linear.config]
name = "integer"
data_in_width = 8
data_in_frac_width = 4
weight_width = 6
weight_frac_width = 5
bias_width = 16
bias_frac_width = 8
data_out_width = 12
data_out_frac_width = 6
)",
                                                                       "m.toml");
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].by, By::Type);
  EXPECT_EQ(rules[0].match, "linear");
  EXPECT_THAT(
      rules[0].formats,
      ElementsAre(Pair(TensorRole::Weights, "fixed:6,5"), Pair(TensorRole::Bias, "fixed:16,8"),
                  Pair(TensorRole::Inputs, "fixed:8,4"), Pair(TensorRole::Outputs, "fixed:12,6")));
  EXPECT_EQ(rules[1].by, By::Any);
  EXPECT_THAT(rules[1].formats, IsEmpty());
}

TEST(MaseRules, TakeAttentionsWeightsFromItsSecondProduct) {
  const std::vector<QuantizationRule> rules = parse_quantization_rules(R"(
by = "type"
[attention.config]
name = "mxint"
[attention.config.av_matmul]
data_in_width = 8
data_in_block_size = 16
)",
                                                                       "r.toml");
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_THAT(rules[0].formats,
              ElementsAre(Pair(TensorRole::AttentionWeights, "mxint:8,block=16")));
}

TEST(QuantizationRules, RefuseFormatsThatAttentionsWeightsCannotHave) {
  EXPECT_EQ(refusal("[default]\nattention_weights = \"bfp:8,block=2x8\"\n"),
            "r.toml:1: attention_weights: attention: bfp:8,block=2x8 has a scale for several rows, "
            "but each query's weights are rounded alone");
}

TEST(MaseRules, KeepTheOrderOfTheFile) {
  const std::vector<QuantizationRule> rules = parse_quantization_rules(R"(
by = "regex_name"
[default]
name = "ternary"
weight_width = 2
['layer\.0\.query']
name = "NA"
['layer\.']
name = "binary"
weight_stochastic = false
)",
                                                                       "m.toml");
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].match, "layer\\.0\\.query");
  EXPECT_EQ(rules[1].match, "layer\\.");
  EXPECT_EQ(rules[1].by, By::Regex);
  EXPECT_EQ(rules[2].by, By::Any);
}

std::string weights_of(const std::string& keys) {
  return parse_quantization_rules("by = \"type\"\n[linear]\n" + keys, "m.toml")
      .at(0)
      .formats.at(TensorRole::Weights);
}

TEST(MaseRules, KnowEveryFormatByItsName) {
  EXPECT_EQ(weights_of("name = \"minifloat_denorm\"\nweight_width = 8\nweight_exponent_width = 4\n"
                       "weight_exponent_bias = 9\n"),
            "minifloat:8,4,bias=9");
  EXPECT_EQ(weights_of("name = \"minifloat_ieee\"\nweight_width = 8\nweight_exponent_width = 4\n"
                       "weight_exponent_bias = \"none\"\n"),
            "minifloat:8,4,bias=7");
  EXPECT_EQ(weights_of("name = \"log\"\nweight_width = 8\n"), "log:8,bias=63");
  EXPECT_EQ(weights_of("name = \"block_fp\"\nweight_width = 8\nweight_block_size = [1, 16]\n"),
            "bfp:8,block=16");
  EXPECT_EQ(weights_of("name = \"block_minifloat\"\nweight_width = 8\nweight_exponent_width = 4\n"
                       "weight_block_size = [16]\n"),
            "block_minifloat:8,4,block=16");
  EXPECT_EQ(weights_of("name = \"block_log\"\nweight_width = 8\nweight_block_size = [16]\n"),
            "block_log:8,block=16");
  EXPECT_EQ(weights_of("name = \"mxint\"\nweight_width = 8\nweight_block_size = 32\n"),
            "mxint:8,block=32");
  EXPECT_EQ(weights_of("name = \"binary_residual\"\nweight_width = 2\n"), "binary:residual,2");
}

TEST(MaseRules, RoundDownWhereTheyAreToldTo) {
  EXPECT_EQ(weights_of("name = \"fixed\"\nfloor = true\nweight_width = 8\n"
                       "weight_frac_width = 3\n"),
            "mase.integer_floor:8,3");
}

TEST(MaseRules, RefuseKeysThatWouldDoNothing) {
  const std::string start = "by = \"type\"\n[linear]\nname = \"mxint\"\n";
  const auto first_words = [&](const std::string& key) {
    const std::string text = refusal(start + "weight_width = 8\nweight_block_size = 16\n" + key);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_words("wieght_width = 8\n"), "r.toml:2: unknown key \"wieght_width\"");
  EXPECT_EQ(first_words("weight_frac_widht = 8\n"), "r.toml:2: unknown key \"weight_frac_widht\"");
  EXPECT_EQ(first_words("gptq = true\n"), "r.toml:2: gptq: give --gptq instead");
  EXPECT_EQ(first_words("weight_stochastic = true\n"),
            "r.toml:2: weight_stochastic: not supported");
  EXPECT_EQ(first_words("[linear.qk_matmul]\nbypass = false\n"),
            "r.toml:2: qk_matmul: not read: give queries, keys and values their format with "
            "--attention");
  EXPECT_EQ(first_words("[linear.av_matmul]\ndata_in_widht = 8\n"),
            "r.toml:2: av_matmul: unknown key \"data_in_widht\"");
  EXPECT_NO_THROW(
      parse_quantization_rules(start + "weight_width = 8\nweight_block_size = 16\ngptq = false\n"
                                       "[linear.softmax]\nbypass = true\n",
                               "r.toml"));
}

TEST(MaseRules, NameTheLineOfWhatIsWrong) {
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"integr\"\nweight_width = 8\n").substr(0, 34),
            "r.toml:2: unknown name \"integr\"; k");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"integer\"\nweight_width = 8\n"),
            "r.toml:2: weight_frac_width is missing: expected a whole number");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"integer\"\n"),
            "r.toml:2: name = \"integer\" has neither data_in_*, weight_*, bias_* nor data_out_* "
            "keys");
  EXPECT_EQ(refusal("by = \"type\"\nlinear = 3\n"), "r.toml:2: \"linear\" must be a table");
  EXPECT_EQ(refusal("by = \"kind\"\n").substr(0, 24), "r.toml:1: unknown by \"ki");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"integer\"\nweight_width = 80\n"
                    "weight_frac_width = 4\n"),
            "r.toml:2: weights: format \"fixed:80,4\": width must be between 2 and 32, got 80");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"minifloat_ieee\"\nweight_width = 8\n"
                    "weight_exponent_width = -3\n")
                .substr(0, 59),
            "r.toml:2: weights: format \"minifloat:8,-3,bias=0\": exponent");
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
