// A small Llama written out of ops: grouped-query attention, rotary positions, RMS norms and a
// gated feed-forward part, against logits computed in float64 by a program of its own.

#include <gtest/gtest.h>

#include <filesystem>

#include "lathe/core/graph.h"
#include "lathe/engine/executor.h"
#include "lathe/io/json_file.h"
#include "lathe/io/safetensors.h"

namespace lathe::train {
namespace {

using nlohmann::json;

// Nodes named after the states of a Hugging Face directory. The batch is packed: tokens [T] and
// offsets [S+1].
class LlamaGraph {
 public:
  LlamaGraph(const json& config, const io::SafetensorsFile& file) : config_(config), file_(file) {
    Value x = node("embed", "embedding", {ids_, weight("model.embed_tokens.weight")});
    for (std::int64_t layer = 0; layer < config["num_hidden_layers"].get<std::int64_t>(); ++layer)
      x = add_layer(fmt::format("model.layers.{}.", layer), x);
    x = norm("model.norm", x);
    graph.set_output("logits", node("logits", "linear", {x, weight("model.embed_tokens.weight")}));
    verify(graph);
  }

  Graph graph;
  State state;

 private:
  Value input(const char* name, Size size) {
    return {graph.add({.name = name, .op = "input", .inputs = {}, .types = {{DType::I32, {size}}}}),
            0};
  }
  Value node(const std::string& name, const char* op, std::vector<Value> inputs,
             Attributes attributes = {}) {
    return {graph.add({.name = name,
                       .op = op,
                       .inputs = std::move(inputs),
                       .attributes = std::move(attributes)}),
            0};
  }
  Value weight(const std::string& name) {
    if (const auto known = graph.find(name)) return {*known, 0};
    state[name] = file_.tensor(name);
    const std::vector<std::int64_t>& dims = state[name].dims();
    return {graph.add({.name = name,
                       .op = "state",
                       .inputs = {},
                       .types = {{DType::F32, {dims.begin(), dims.end()}}}}),
            0};
  }
  Value linear(const std::string& name, Value x) {
    return node(name, "linear", {x, weight(name + ".weight")});
  }
  Value norm(const std::string& name, Value x) {
    return node(name, "rms_norm", {x, weight(name + ".weight")},
                {{"eps", config_["rms_norm_eps"].get<double>()}});
  }
  Value rope(const std::string& name, Value x, std::int64_t heads) {
    return node(name, "rope", {x, positions_},
                {{"heads", heads}, {"theta", config_["rope_theta"].get<double>()}});
  }
  Value add_layer(const std::string& prefix, Value x) {
    const auto heads = config_["num_attention_heads"].get<std::int64_t>();
    const auto kv_heads = config_["num_key_value_heads"].get<std::int64_t>();
    const std::string self = prefix + "self_attn.";
    const Value a = norm(prefix + "input_layernorm", x);
    const Value q = rope(self + "q_rope", linear(self + "q_proj", a), heads);
    const Value k = rope(self + "k_rope", linear(self + "k_proj", a), kv_heads);
    const Value v = linear(self + "v_proj", a);
    const Value context = node(self + "attention", "attention", {q, k, v, kNone, offsets_},
                               {{"heads", heads}, {"kv_heads", kv_heads}, {"causal", true}});
    x = node(self + "add", "add", {linear(self + "o_proj", context), x});
    const Value b = norm(prefix + "post_attention_layernorm", x);
    const Value gate = node(prefix + "mlp.silu", "silu", {linear(prefix + "mlp.gate_proj", b)});
    const Value gated = node(prefix + "mlp.mul", "mul", {gate, linear(prefix + "mlp.up_proj", b)});
    return node(prefix + "mlp.add", "add", {linear(prefix + "mlp.down_proj", gated), x});
  }

  const json& config_;
  const io::SafetensorsFile& file_;
  Value ids_ = input("input_ids", Size::symbol("T"));
  Value positions_ = input("positions", Size::symbol("T"));
  Value offsets_ = input("offsets", Size::symbol("S") + Size(1));
};

class LlamaFixture : public testing::TestWithParam<const char*> {};

TEST_P(LlamaFixture, GivesTheReferenceLogits) {
  const std::filesystem::path folder =
      std::filesystem::path(LATHE_SHARED_DIR) / "data/llama-260k-fixture";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const json config = io::read_json(folder / "config.json");
  const json reference = io::read_json(folder / "reference_logits.json");
  const io::SafetensorsFile file = io::SafetensorsFile::open(folder / "model.safetensors");
  const LlamaGraph llama(config, file);

  // The sequence twice, behind each other: neither may see the other.
  const auto tokens = reference["tokens"].get<std::vector<std::int32_t>>();
  std::vector<std::int32_t> ids, positions;
  for (int copy = 0; copy < 2; ++copy)
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ids.push_back(tokens[i]);
      positions.push_back(static_cast<std::int32_t>(i));
    }
  const auto length = static_cast<std::int32_t>(tokens.size());
  const auto tensor = [](const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                      std::span<const std::int32_t>(values));
  };
  const Feed outputs = engine::make_executor(llama.graph, llama.state, {.device = GetParam()})
                           ->run({{"input_ids", tensor(ids)},
                                  {"positions", tensor(positions)},
                                  {"offsets", tensor({0, length, 2 * length})}});

  const auto expected = reference["logits_last_row"].get<std::vector<double>>();
  const auto vocabulary = static_cast<std::int64_t>(expected.size());
  for (const std::int64_t row : {length - 1, 2 * length - 1})
    for (std::int64_t i = 0; i < vocabulary; ++i)
      ASSERT_NEAR(outputs.at("logits").at(row * vocabulary + i),
                  expected[static_cast<std::size_t>(i)], 1e-4)
          << "row " << row << ", token " << i;
}

INSTANTIATE_TEST_SUITE_P(EveryExecutor, LlamaFixture, testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lathe::train
