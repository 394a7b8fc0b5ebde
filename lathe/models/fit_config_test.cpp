#include "lathe/models/fit_config.h"

#include <gtest/gtest.h>

namespace lathe::models {
namespace {

Attributes small_bert() {
  return {{"vocab_size", std::int64_t{20}},
          {"hidden_size", std::int64_t{8}},
          {"num_hidden_layers", std::int64_t{2}},
          {"num_attention_heads", std::int64_t{2}},
          {"intermediate_size", std::int64_t{12}}};
}

Graph build_bert(const Attributes& config, const std::string& task) {
  return build(*FamilyRegistry::instance().find("bert"), config, {.task = task});
}

Attributes fit(const Graph& graph, const std::string& task = "classify") {
  return fit_config(*FamilyRegistry::instance().find("bert"), small_bert(), task, graph);
}

TEST(FitConfig, ReadsSizesThatAllLayersHave) {
  Attributes smaller = small_bert();
  smaller["intermediate_size"] = std::int64_t{5};
  smaller["vocab_size"] = std::int64_t{9};
  EXPECT_EQ(fit(build_bert(smaller, "classify")), smaller);
  EXPECT_EQ(fit(build_bert(smaller, "mlm"), "mlm"), smaller);
}

TEST(FitConfig, LeavesWhatLayersDisagreeOn) {
  Graph graph = build_bert(small_bert(), "classify");
  const NodeId bias = graph.at("bert.encoder.layer.0.intermediate.dense.bias");
  const NodeId weight = graph.at("bert.encoder.layer.0.intermediate.dense.weight");
  graph.set_types(bias, {{DType::F32, {Size(5)}}});
  graph.set_types(weight, {{DType::F32, {Size(5), Size(8)}}});
  EXPECT_EQ(fit(graph), small_bert());
}

TEST(FitConfig, AddsNoKeyThatSaysNothing) {
  const ModelFamily& gpt2 = *FamilyRegistry::instance().find("gpt2");
  const Attributes config{
      {"n_embd", std::int64_t{8}}, {"n_head", std::int64_t{2}}, {"n_layer", std::int64_t{1}}};
  EXPECT_EQ(fit_config(gpt2, config, "causal-lm", build(gpt2, config, {.task = "causal-lm"})),
            config);
}

}  // namespace
}  // namespace lathe::models
