#include "lathe/compress/mase_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using By = QuantizationRule::By;

std::string refusal(const std::string& text) {
  return error_text([&] { parse_quantization_rules(text, "r.toml"); });
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
            "mase.minifloat_denorm:8,4,bias=9");
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
  EXPECT_EQ(weights_of("name = \"binary_residual\"\nweight_levels = 3\n"), "binary:residual,3");
  EXPECT_EQ(weights_of("name = \"ternary\"\nweight_scaling_factor = true\n"), "ternary");
  EXPECT_EQ(weights_of("name = \"ternary\"\nweight_scaling_factor = false\n"), "mase.ternary");
  EXPECT_EQ(weights_of("name = \"binary\"\nweight_bipolar = false\n"), "mase.binary_scaled");
  EXPECT_EQ(weights_of("name = \"mxint_hardware\"\nweight_width = 8\n"
                       "weight_parallelism = [1, 4]\n"),
            "mxint:8,block=4");
  EXPECT_EQ(weights_of("name = \"mxfp\"\nweight_exponent_width = 2\nweight_frac_width = 1\n"
                       "weight_block_size = 32\n"),
            "mxfp:e2m1,block=32");
}

// Where ours have no place for what a key asks, MASE's own values are the answer.
TEST(MaseRules, TakeTheTwinWhereOurFormatCannotFollow) {
  EXPECT_EQ(weights_of("name = \"block_fp\"\nweight_width = 8\nweight_exponent_width = 5\n"
                       "weight_exponent_bias = \"NA\"\nweight_block_size = [1, 16]\n"),
            "mase.block_fp:8,5,bias=15,block=1x16");
  EXPECT_EQ(weights_of("name = \"block_fp\"\nweight_width = 8\nweight_exponent_width = 8\n"
                       "weight_exponent_bias = 127\nweight_block_size = [4, 16]\n"),
            "bfp:8,block=4x16");
  EXPECT_EQ(weights_of("name = \"block_minifloat\"\nweight_width = 8\nweight_exponent_width = 4\n"
                       "weight_exponent_bias_width = 4\nweight_block_size = [16]\n"),
            "mase.block_minifloat:8,4,bias_width=4,block=1x16");
  EXPECT_EQ(weights_of("name = \"block_log\"\nweight_width = 8\nweight_exponent_bias_width = 4\n"
                       "weight_block_size = [2, 16]\n"),
            "mase.block_log:8,bias_width=4,block=2x16");
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
  EXPECT_EQ(first_words("gptq = true\n"),
            "r.toml:2: gptq: not read: it is an option of quantizing, for all layers");
  EXPECT_EQ(first_words("weight_stochastic = true\n"),
            "r.toml:2: weight_stochastic: not supported");
  EXPECT_EQ(first_words("[linear.qk_matmul]\nbypass = false\n"),
            "r.toml:2: qk_matmul: not read: queries, keys and values get their format from a rule "
            "for attention");
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

// What a configuration of the weights becomes: a format, or the refusal.
std::string outcome(const std::string& name, const std::map<std::string, std::string>& members) {
  std::string text = "by = \"type\"\n[linear.config]\nname = \"" + name + "\"\n";
  for (const auto& [member, value] : members) text += "weight_" + member + " = " + value + "\n";
  std::string format;
  const std::string error = error_text([&] {
    format = parse_quantization_rules(text, "r.toml").at(0).formats.at(TensorRole::Weights);
  });
  return error == "no error" ? format : "refused: " + error;
}

struct Quantizer {
  const char* name;
  std::map<std::string, std::string> members;  // what it needs
};

class EveryQuantizer : public testing::TestWithParam<Quantizer> {};

TEST_P(EveryQuantizer, ReadsAKeyOrRefusesIt) {
  const auto& [name, needed] = GetParam();
  ASSERT_EQ(outcome(name, needed).find("refused"), std::string::npos) << outcome(name, needed);
  // Two values of each key: what was changed must show.
  const std::map<std::string, std::pair<std::string, std::string>> values = {
      {"width", {"6", "8"}},
      {"frac_width", {"2", "3"}},
      {"exponent_width", {"3", "4"}},
      {"exponent_bias", {"5", "6"}},
      {"exponent_bias_width", {"4", "8"}},
      {"block_size", {"[1, 8]", "[1, 16]"}},
      {"skip_first_dim", {"true", "false"}},
      {"scaling_factor", {"true", "false"}},
      {"mean", {"0.5", "0.7"}},
      {"median", {"0.5", "0.7"}},
      {"max", {"0.5", "0.7"}},
      {"stochastic", {"true", "false"}},
      {"bipolar", {"true", "false"}},
      {"levels", {"2", "3"}},
      {"parallelism", {"[1, 4]", "[1, 8]"}},
  };
  for (const auto& [member, pair] : values) {
    const auto with = [&](const std::string& value) {
      std::map<std::string, std::string> members = needed;
      members[member] = value;
      return outcome(name, members);
    };
    const std::string one = with(pair.first), other = with(pair.second);
    const bool is_refused = one.starts_with("refused") && other.starts_with("refused");
    EXPECT_TRUE(one != other || is_refused) << member << " changes nothing: " << one;
    // A refusal names the key, or the format that it would give.
    for (const std::string& text : {one, other})
      EXPECT_TRUE(!text.starts_with("refused") || text.find("format \"") != text.npos ||
                  text.find("weight_" + member) != text.npos)
          << member << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , EveryQuantizer,
    testing::Values(
        Quantizer{"integer", {{"width", "8"}, {"frac_width", "4"}}},
        Quantizer{"fixed", {{"width", "8"}, {"frac_width", "4"}}},
        Quantizer{"minifloat_ieee", {{"width", "8"}, {"exponent_width", "4"}}},
        Quantizer{"minifloat_denorm", {{"width", "8"}, {"exponent_width", "4"}}},
        Quantizer{"log", {{"width", "8"}}},
        Quantizer{"block_fp", {{"width", "8"}, {"exponent_width", "5"}, {"block_size", "[1, 16]"}}},
        Quantizer{"block_minifloat",
                  {{"width", "8"}, {"exponent_width", "4"}, {"block_size", "[1, 16]"}}},
        Quantizer{"block_log", {{"width", "8"}, {"block_size", "[1, 16]"}}},
        Quantizer{"mxint", {{"width", "8"}, {"block_size", "16"}}},
        Quantizer{"mxint_hardware", {{"width", "8"}, {"parallelism", "[1, 4]"}}},
        Quantizer{"mxfp", {{"exponent_width", "4"}, {"frac_width", "3"}, {"block_size", "16"}}},
        Quantizer{"binary", {{"width", "1"}}}, Quantizer{"binary_residual", {{"levels", "2"}}},
        Quantizer{"ternary", {{"width", "2"}}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(MaseRules, NameAnIgnoredKeyAndItsTable) {
  EXPECT_EQ(
      refusal("by = \"type\"\n[linear.config]\nname = \"integer\"\nweight_width = 8\n"
              "weight_frac_width = 4\nweight_levels = 2\n"),
      "r.toml:2: weight_levels in [linear.config]: would do nothing: integer does not read it");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"mxint\"\nfloor = true\n"
                    "weight_width = 8\nweight_block_size = 16\n"),
            "r.toml:2: floor: would do nothing: mxint rounds to the nearest");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nweight_width = 8\n"),
            "r.toml:2: [linear]: name is missing: expected a quantizer's, or \"NA\"");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nweight_width = 8\n[linear.config]\nname = \"NA\"\n"),
            "r.toml:2: weight_width in [linear]: would do nothing: only linear.config is read");
  EXPECT_EQ(refusal("by = \"type\"\n[attention]\nname = \"mxint\"\n[attention.av_matmul]\n"
                    "data_in_width = 8\ndata_in_block_size = 16\nweight_width = 8\n"),
            "r.toml:2: av_matmul: weight_width in [attention.av_matmul]: would do nothing: only "
            "data_in_* is read there");
  EXPECT_EQ(refusal("by = \"type\"\n[linear]\nname = \"block_fp\"\ndata_in_width = 8\n"
                    "data_in_block_size = [1, 16]\ndata_in_skip_first_dim = false\n"),
            "r.toml:2: data_in_skip_first_dim in [linear]: must be true");
}

}  // namespace
}  // namespace lathe::compress
