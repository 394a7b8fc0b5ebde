#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"
#include "lathe/models/initialize.h"
#include "lathe/models/set_inputs.h"
#include "lathe/models/tensor_names.h"
#include "lathe/ops/run_reference.h"

namespace lathe::models {
namespace {

using testing::ElementsAre;
using Row = std::vector<double>;
using Rows = std::vector<Row>;

const ModelFamily& family() {
  return FamilyRegistry::instance().at("gpt2", "model");
}

const char* const kSmall =
    "vocab_size=11, n_positions=8, n_embd=6, n_layer=2, n_head=2, n_inner=10, "
    "initializer_range=0.5";

Graph gpt2(const std::string& config, BuildOptions options) {
  return build(family(), parse_attributes(config), options);
}

// Weights large enough that every part of the model shows in the logits.
State weights_of(const Graph& graph) {
  State state = initialize(graph, 3);
  std::uint32_t random = 7;
  for (auto& [name, tensor] : state)
    for (float& value : tensor.mutable_data<float>())
      value +=
          static_cast<float>((random = random * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
  return state;
}

// Runs a graph node by node with the ops' own kernels.
std::map<std::string, Tensor> run(const Graph& graph, const State& state, const State& feed,
                                  const SymbolValues& symbols) {
  std::map<Value, Tensor> values;
  for (const NodeId id : graph.topological_order()) {
    if (graph.is(id, "input") || graph.is(id, "state")) {
      values[{id, 0}] = (graph.is(id, "input") ? feed : state).at(graph.name(id));
      continue;
    }
    std::vector<const Tensor*> operands;
    for (const Value& operand : graph.inputs(id))
      operands.push_back(operand.is_none() ? nullptr : &values.at(operand));
    std::vector<Tensor> results = ops::run_reference(graph, id, operands, symbols);
    for (std::size_t i = 0; i < results.size(); ++i)
      values[{id, static_cast<std::int32_t>(i)}] = results[i];
  }
  std::map<std::string, Tensor> outputs;
  for (const auto& [name, value] : graph.outputs()) outputs[name] = values.at(value);
  return outputs;
}

// The same model written down once more, as plain loops over one sequence.
class PlainGpt2 {
 public:
  PlainGpt2(const State& state, std::size_t layers, std::size_t heads,
            std::vector<double> score_scales)
      : state_(state), layers_(layers), heads_(heads), score_scales_(std::move(score_scales)) {}

  // The last hidden states of the tokens.
  Rows run(const std::vector<int>& ids) const {
    Rows x;
    for (std::size_t i = 0; i < ids.size(); ++i)
      x.push_back(sum(row("transformer.wte.weight", static_cast<std::size_t>(ids[i])),
                      row("transformer.wpe.weight", i)));
    for (std::size_t layer = 0; layer < layers_; ++layer) x = block(layer, x);
    for (Row& one : x) one = normed("transformer.ln_f", one);
    return x;
  }
  Row linear(const std::string& name, const Row& x, bool has_bias = true) const {
    Row y;
    for (std::size_t i = 0; i < static_cast<std::size_t>(at(name + ".weight").dim(0)); ++i) {
      const Row w = row(name + ".weight", i);
      y.push_back(has_bias ? at(name + ".bias").at(static_cast<std::int64_t>(i)) : 0);
      for (std::size_t j = 0; j < x.size(); ++j) y.back() += w[j] * x[j];
    }
    return y;
  }

 private:
  const Tensor& at(const std::string& name) const { return state_.at(name); }
  Row row(const std::string& name, std::size_t index) const {
    const auto width = static_cast<std::size_t>(at(name).dim(1));
    Row values;
    for (std::size_t i = 0; i < width; ++i)
      values.push_back(at(name).at(static_cast<std::int64_t>(index * width + i)));
    return values;
  }
  static Row sum(Row a, const Row& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  Row normed(const std::string& name, const Row& x) const {
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x)
      variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    Row y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * at(name + ".weight").at(index) +
                  at(name + ".bias").at(index));
    }
    return y;
  }
  static double gelu(double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  Rows block(std::size_t layer, const Rows& x) const {
    const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
    const std::size_t hidden = x[0].size(), size = hidden / heads_;
    Rows joined, result;
    for (const Row& one : x)
      joined.push_back(linear(prefix + "attn.c_attn", normed(prefix + "ln_1", one)));
    for (std::size_t query = 0; query < x.size(); ++query) {
      Row context(hidden, 0);
      for (std::size_t head = 0; head < heads_; ++head) {
        Row weights;
        double total = 0;
        for (std::size_t key = 0; key <= query; ++key) {
          double score = 0;
          for (std::size_t i = head * size; i < (head + 1) * size; ++i)
            score += joined[query][i] * joined[key][hidden + i];
          weights.push_back(std::exp(score * score_scales_[layer]));
          total += weights.back();
        }
        for (std::size_t key = 0; key <= query; ++key)
          for (std::size_t i = head * size; i < (head + 1) * size; ++i)
            context[i] += weights[key] / total * joined[key][2 * hidden + i];
      }
      const Row attended = sum(x[query], linear(prefix + "attn.c_proj", context));
      Row wide = linear(prefix + "mlp.c_fc", normed(prefix + "ln_2", attended));
      for (double& value : wide) value = gelu(value);
      result.push_back(sum(attended, linear(prefix + "mlp.c_proj", wide)));
    }
    return result;
  }

  const State& state_;
  std::size_t layers_, heads_;
  std::vector<double> score_scales_;
};

const std::vector<int> kFirst{4, 1, 9, 10}, kSecond{2, 7, 3};

// Both sequences in one batch, the second one padded.
State padded_feed() {
  return {{"input_ids", Tensor::from<std::int32_t>({2, 4}, {4, 1, 9, 10, 2, 7, 3, 0})},
          {"attention_mask", Tensor::from<std::int32_t>({2, 4}, {1, 1, 1, 1, 1, 1, 1, 0})}};
}
State packed_feed() {
  return {{"input_ids", Tensor::from<std::int32_t>({7}, {4, 1, 9, 10, 2, 7, 3})},
          {"offsets", Tensor::from<std::int32_t>({3}, {0, 4, 7})}};
}

// Results are floats of size 1 to 10 rounded once in each op, some 20 one after the other.
constexpr double kTolerance = 10 * 20 * 0x1p-24;

void expect_rows(const Tensor& tensor, std::size_t first, const Rows& expected) {
  const auto width = static_cast<std::size_t>(tensor.dims().back());
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t j = 0; j < width; ++j)
      EXPECT_NEAR(tensor.at(static_cast<std::int64_t>((first + i) * width + j)), expected[i][j],
                  kTolerance)
          << "token " << first + i << ", element " << j;
}

TEST(Gpt2, GivesTheHiddenStatesOfTheModelWrittenAsLoops) {
  struct Scales {
    const char* config;
    std::vector<double> by_layer;
  };
  const double root = 1 / std::sqrt(3.0);
  for (const Scales& scales :
       {Scales{"", {root, root}}, Scales{", scale_attn_weights=false", {1, 1}},
        Scales{", scale_attn_by_inverse_layer_idx=true", {root, root / 2}}}) {
    SCOPED_TRACE(scales.config);
    Graph graph = gpt2(std::string(kSmall) + scales.config, {.task = "encode"});
    const State state = weights_of(graph);
    const PlainGpt2 plain(state, 2, 2, scales.by_layer);
    const Tensor padded =
        run(graph, state, padded_feed(), {{"B", 2}, {"L", 4}}).at("last_hidden_state");
    expect_rows(padded, 0, plain.run(kFirst));
    expect_rows(padded, 4, plain.run(kSecond));

    run_pass("pack-sequences", graph);
    const Tensor packed =
        run(graph, state, packed_feed(), {{"S", 2}, {"T", 7}}).at("last_hidden_state");
    expect_rows(packed, 0, plain.run(kFirst));
    expect_rows(packed, 4, plain.run(kSecond));
  }
}

TEST(Gpt2, PredictsWithTheTableItReadsWithOrItsOwn) {
  for (const bool is_tied : {true, false}) {
    const Graph graph = gpt2(std::string(kSmall) + (is_tied ? "" : ", tie_word_embeddings=false"),
                             {.task = "causal-lm", .inputs = {"input_ids", "attention_mask"}});
    EXPECT_EQ(graph.name(graph.input(graph.at("lm_head"), 1)),
              is_tied ? "transformer.wte.weight" : "lm_head.weight");
    State state = weights_of(graph);
    const Tensor logits = run(graph, state, padded_feed(), {{"B", 2}, {"L", 4}}).at("logits");
    if (is_tied) state["lm_head.weight"] = state.at("transformer.wte.weight");
    const PlainGpt2 plain(state, 2, 2, {1 / std::sqrt(3.0), 1 / std::sqrt(3.0)});
    Rows expected;
    for (const Row& hidden : plain.run(kFirst))
      expected.push_back(plain.linear("lm_head", hidden, false));
    expect_rows(logits, 0, expected);
  }
}

TEST(Gpt2, ClassifiesByTheLastTokenOfEachSequencePaddedOrPacked) {
  Graph graph = gpt2(
      kSmall, {.task = "classify", .inputs = {"input_ids", "attention_mask"}, .num_labels = 3});
  const State state = weights_of(graph);
  const PlainGpt2 plain(state, 2, 2, {1 / std::sqrt(3.0), 1 / std::sqrt(3.0)});
  const Rows expected{plain.linear("score", plain.run(kFirst).back(), false),
                      plain.linear("score", plain.run(kSecond).back(), false)};
  expect_rows(run(graph, state, padded_feed(), {{"B", 2}, {"L", 4}}).at("logits"), 0, expected);
  run_pass("pack-sequences", graph);
  expect_rows(run(graph, state, packed_feed(), {{"S", 2}, {"T", 7}}).at("logits"), 0, expected);
}

TEST(Gpt2, NamesItsStatesAsHuggingFaceDoes) {
  const Graph graph =
      gpt2("vocab_size=11, n_positions=8, n_embd=6, n_layer=1, n_head=2", {.task = "classify"});
  std::vector<std::string> names;
  for (const NodeId id : graph.nodes_of("state")) names.push_back(graph.name(id));
  EXPECT_THAT(names,
              ElementsAre("transformer.wte.weight", "transformer.wpe.weight",
                          "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias",
                          "transformer.h.0.attn.c_attn.weight", "transformer.h.0.attn.c_attn.bias",
                          "transformer.h.0.attn.c_proj.weight", "transformer.h.0.attn.c_proj.bias",
                          "transformer.h.0.ln_2.weight", "transformer.h.0.ln_2.bias",
                          "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_fc.bias",
                          "transformer.h.0.mlp.c_proj.weight", "transformer.h.0.mlp.c_proj.bias",
                          "transformer.ln_f.weight", "transformer.ln_f.bias", "score.weight"));
  EXPECT_EQ(to_text(graph.types(graph.at("transformer.h.0.mlp.c_fc.weight"))[0]), "f32[24,6]");
}

TEST(Gpt2, KnowsWhichTensorsFilesHoldTransposed) {
  EXPECT_TRUE(is_transposed(family(), "transformer.h.0.attn.c_attn.weight"));
  EXPECT_TRUE(is_transposed(family(), "transformer.h.0.mlp.c_proj.weight"));
  EXPECT_FALSE(is_transposed(family(), "transformer.wte.weight"));
  EXPECT_FALSE(is_transposed(family(), "score.weight"));
  EXPECT_FALSE(is_transposed(family(), "transformer.h.0.attn.c_attn.bias"));
  EXPECT_TRUE(is_meaningless(family(), "transformer.h.0.attn.bias"));
  EXPECT_TRUE(is_meaningless(family(), "h.11.attn.masked_bias"));
  EXPECT_FALSE(is_meaningless(family(), "transformer.h.0.attn.c_attn.bias"));
  EXPECT_THAT(names_in_files(family(), "transformer.wte.weight"),
              ElementsAre("transformer.wte.weight", "wte.weight"));
}

TEST(Gpt2, StartsProjectionsSmallerTheDeeperItIs) {
  const Graph graph = gpt2("n_layer=8, initializer_range=0.04", {.task = "encode"});
  const auto scale = [&](const char* name) {
    return graph.attribute(graph.at(name)).real("scale");
  };
  EXPECT_DOUBLE_EQ(scale("transformer.h.0.attn.c_attn.weight"), 0.04);
  EXPECT_DOUBLE_EQ(scale("transformer.h.7.mlp.c_proj.weight"), 0.01);
}

TEST(Gpt2, RefusesConfigurationsThatItCannotBuild) {
  const auto refusal = [](const char* config) {
    return error_text([&] { gpt2(config, {.task = "causal-lm"}); });
  };
  EXPECT_EQ(refusal("n_embd=30, n_head=4"), "n_embd 30 is not a multiple of n_head 4");
  EXPECT_EQ(refusal("reorder_and_upcast_attn=true"),
            "reorder_and_upcast_attn is true, which is not supported: expected false");
  EXPECT_EQ(refusal("n_layer=-1"), "n_layer is -1: expected 0 to 1024");
  EXPECT_EQ(refusal("attn_pdrop=1.0"), "dropout probability 1: expected 0 up to below 1");
}

}  // namespace
}  // namespace lathe::models
