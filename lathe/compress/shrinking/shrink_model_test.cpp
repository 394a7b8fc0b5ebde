#include <gtest/gtest.h>

#include <random>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/granules.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/shrinking/shrink.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/testing/scratch_directory.h"

// Whole models that lost neurons and heads: same answers, and they save, load, train and export.
namespace lathe::compress {
namespace {

// A builder's model with every state random, biases and norms too.
io::Model random_model(const std::string& name, const Attributes& config, std::mt19937& random,
                       const std::string& task = "") {
  io::Model model = io::load_model(name, {.task = task, .config = config});
  for (auto& [state, tensor] : model.state)
    for (float& value : tensor.mutable_data<float>())
      value = static_cast<float>(random() % 2000) / 1000 - 1;
  return model;
}

io::Model small_bert(std::mt19937& random, std::int64_t heads = 4, std::int64_t layers = 2) {
  return random_model("bert-tiny",
                      {{"vocab_size", std::int64_t{20}},
                       {"hidden_size", 4 * heads},
                       {"num_attention_heads", heads},
                       {"num_hidden_layers", layers},
                       {"intermediate_size", std::int64_t{12}},
                       {"max_position_embeddings", std::int64_t{8}}},
                      random);
}
io::Model small_gpt2(std::mt19937& random, std::int64_t heads = 3, std::int64_t layers = 2) {
  return random_model("gpt2-tiny",
                      {{"vocab_size", std::int64_t{20}},
                       {"n_embd", 4 * heads},
                       {"n_head", heads},
                       {"n_layer", layers},
                       {"n_inner", std::int64_t{10}},
                       {"n_positions", std::int64_t{8}}},
                      random, "classify");
}

Feed feed_of(const Graph& graph) {
  std::mt19937 random(7);
  Feed feed;
  for (const NodeId id : graph.nodes_of("input")) {
    const Type& type = graph.types(id)[0];
    Tensor tensor(type.dtype, type.dims({{"B", 3}, {"L", 5}}));
    if (type.dtype == DType::F32)
      for (float& value : tensor.mutable_data<float>())
        value = static_cast<float>(random() % 2000) / 1000 - 1;
    else
      for (std::int32_t& value : tensor.mutable_data<std::int32_t>())
        value = graph.name(id) == "input_ids" ? static_cast<std::int32_t>(random() % 20) : 1;
    feed[graph.name(id)] = tensor;
  }
  return feed;
}

Tensor answer(const io::Model& model, const std::string& device = "reference") {
  return engine::make_executor(model.graph, model.state, {.device = device})
      ->run(feed_of(model.graph))
      .at("logits");
}

// What is taken away adds 0 to sums that take one term after another, which changes none of them:
// no tolerance, on either backend.
void expect_same_numbers(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dims(), b.dims());
  for (std::int64_t i = 0; i < a.num_elements(); ++i) EXPECT_EQ(a.at(i), b.at(i)) << i;
}

// Masks granules of every unit, as pruning does: some at random, or every second one.
void prune(io::Model& model, const char* granularity, std::mt19937* random = nullptr) {
  const std::vector<PruningUnit> units =
      make_units(model.graph, find_prunable(model.graph), parse_granularity(granularity));
  State masks;
  for (const PruningUnit& unit : units) {
    std::vector<bool> gone(static_cast<std::size_t>(unit.granules));
    for (std::size_t i = 0; i < gone.size(); ++i)
      gone[i] = random != nullptr ? (*random)() % 2 == 0 : i % 2 == 0;
    for (const GranulePart& part : unit.parts) {
      auto [mask, is_new] =
          masks.try_emplace(part.state, DType::F32, model.state.at(part.state).dims());
      const std::span<float> values = mask->second.mutable_data<float>();
      if (is_new) std::ranges::fill(values, 1.0f);
      for_each_element(part, [&](std::size_t granule, std::size_t element) {
        if (gone[granule]) values[element] = 0;
      });
    }
  }
  insert_masks(model.graph, model.state, masks);
}

TEST(ShrinkModel, GivesTheSameAnswersForRandomConfigurations) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const auto heads = static_cast<std::int64_t>(1 + random() % 5);
    const auto layers = static_cast<std::int64_t>(1 + random() % 3);
    io::Model model = seed % 3 == 0   ? small_bert(random, heads, layers)
                      : seed % 3 == 1 ? small_gpt2(random, heads, layers)
                                      : random_model("mlp:6,9,7,11,3", {}, random);
    prune(model, "neuron", &random);
    if (seed % 3 != 2) prune(model, "head", &random);
    const Tensor before = answer(model), fast_before = answer(model, "cpu");
    const ShrinkReport report = shrink(model);
    EXPECT_FALSE(report.parts.empty());
    EXPECT_TRUE(report.notes.empty()) << report.notes.front();
    EXPECT_LT(report.parameters_after, report.parameters_before);
    expect_same_numbers(answer(model), before);
    expect_same_numbers(answer(model, "cpu"), fast_before);
    EXPECT_TRUE(shrink(model).parts.empty());
  }
}

TEST(ShrinkModel, TellsTheConfigurationAndExports) {
  std::mt19937 random(1);
  io::Model model = small_bert(random);
  prune(model, "neuron");
  // The pooler has neurons as well, which no configuration can take away.
  for (const char* name :
       {"bert.pooler.dense.weight.mask", "bert.pooler.dense.bias.mask", "classifier.weight.mask"})
    for (float& value : model.state.at(name).mutable_data<float>()) value = 1;
  const Tensor before = answer(model);
  shrink(model);
  EXPECT_EQ(std::get<std::int64_t>(model.config.at("intermediate_size")), 6);
  const io::ScratchDirectory scratch;
  io::write_huggingface(scratch / "h", model);
  const io::Model loaded = io::load_model((scratch / "h").string());
  EXPECT_EQ(print(loaded.graph), print(model.graph));
  expect_same_numbers(answer(loaded), before);
}

TEST(ShrinkModel, TellsTheConfigurationsOfOtherFamilies) {
  std::mt19937 random(1);
  io::Model gpt2 = small_gpt2(random);
  prune(gpt2, "neuron");
  shrink(gpt2);
  EXPECT_EQ(std::get<std::int64_t>(gpt2.config.at("n_inner")), 5);
  io::Model mlp = random_model("mlp:6,8,4,3", {}, random);
  prune(mlp, "neuron");
  shrink(mlp);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(mlp.config.at("sizes")),
            (std::vector<std::int64_t>{6, 4, 2, 3}));
}

TEST(ShrinkModel, StaysAStoredGraphWhereTheConfigurationHasNoWords) {
  std::mt19937 random(1);
  io::Model model = small_bert(random);
  prune(model, "head");
  const Tensor before = answer(model);
  shrink(model);
  EXPECT_EQ(std::get<std::int64_t>(model.config.at("num_attention_heads")), 4);
  const io::ScratchDirectory scratch;
  io::write_checkpoint(scratch / "c", model);
  const io::Model loaded = io::load_model((scratch / "c").string());
  EXPECT_EQ(print(loaded.graph), print(model.graph));
  expect_same_numbers(answer(loaded), before);
  EXPECT_EQ(error_text([&] { io::write_huggingface(scratch / "h", model); }).substr(0, 75),
            "bert: other programs would run another model, the one that bert builds: \"be");
}

// One layer lost more neurons than the other: a configuration has one number for both.
TEST(ShrinkModel, LeavesTheConfigurationWhereLayersDiffer) {
  std::mt19937 random(1);
  io::Model model = small_bert(random);
  prune(model, "neuron");
  for (float& value :
       model.state.at("bert.encoder.layer.1.output.dense.weight.mask").mutable_data<float>())
    value = 1;
  for (const char* name : {"weight", "bias"})
    for (float& value :
         model.state.at(fmt::format("bert.encoder.layer.1.intermediate.dense.{}.mask", name))
             .mutable_data<float>())
      value = 1;
  shrink(model);
  EXPECT_EQ(std::get<std::int64_t>(model.config.at("intermediate_size")), 12);
}

void quantize(io::Model& model, const std::string& weights) {
  insert_quantizers(model.graph, model.state,
                    {{.by = QuantizationRule::By::Regex,
                      .match = ".*",
                      .formats = {{TensorRole::Weights, weights}, {TensorRole::Bias, "int:8"}}}});
  set_parameter_scales(model.graph, model.state, {});
}

TEST(ShrinkModel, CutsRoundedWeightsWithTheirScales) {
  for (const char* format : {"int:4,channel", "int:8", "fixed:8,4", "int:4,channel,asymmetric",
                             "binary", "binary:scaled"}) {
    std::mt19937 random(1);
    io::Model model = small_gpt2(random);
    prune(model, "neuron");
    prune(model, "head");
    quantize(model, format);
    const Tensor before = answer(model);
    const ShrinkReport report = shrink(model);
    EXPECT_EQ(report.parts.size(), 4u) << format;
    EXPECT_TRUE(report.notes.empty()) << report.notes.front();
    expect_same_numbers(answer(model), before);
  }
}

TEST(ShrinkModel, PacksCodesAgain) {
  for (const bool with_masters : {true, false}) {
    std::mt19937 random(1);
    io::Model model = small_bert(random);
    prune(model, "neuron");
    prune(model, "head");
    quantize(model, "int:4,channel");
    pack_model(model, with_masters);
    const Tensor before = answer(model);
    EXPECT_FALSE(shrink(model).parts.empty());
    expect_same_numbers(answer(model), before);
    EXPECT_FALSE(model.graph.nodes_of("decode").empty());
    EXPECT_EQ(model.masters.empty(), !with_masters);
    const io::ScratchDirectory scratch;
    io::write_checkpoint(scratch / "c", model);
    io::Model loaded = io::load_model((scratch / "c").string(), {.with_masters = true});
    expect_same_numbers(answer(loaded), before);
    unpack_model(loaded);
    expect_same_numbers(answer(loaded), before);
  }
}

void add_lora(io::Model& model, std::mt19937& random) {
  insert_lora(model.graph, model.state, {.rank = 2, .alpha = 4, .targets = {"encoder"}}, 1);
  for (const LoraPath& path : find_lora(model.graph))
    for (float& value : model.state.at(lora_b_name(path.name)).mutable_data<float>())
      value = static_cast<float>(random() % 2000) / 1000 - 1;
}

TEST(ShrinkModel, CutsLoraPathsWithTheirLinears) {
  for (const bool is_first : {true, false}) {
    std::mt19937 random(1);
    io::Model model = small_bert(random);
    if (is_first) add_lora(model, random);
    prune(model, "neuron");
    prune(model, "head");
    if (!is_first) add_lora(model, random);
    const Tensor before = answer(model);
    const ShrinkReport report = shrink(model);
    EXPECT_EQ(report.parts.size(), 5u);  // of two layers and the pooler
    EXPECT_TRUE(report.notes.empty()) << report.notes.front();
    expect_same_numbers(answer(model), before);
    EXPECT_EQ(find_lora(model.graph).size(), 12u);
    EXPECT_EQ(fuse_lora(model.graph, model.state), 12);
  }
}

// A path without a mask reads what the linear beside it does not: only rows can go.
TEST(ShrinkModel, CutsPathsThatHaveNoMask) {
  std::mt19937 random(1);
  io::Model model = small_bert(random);
  prune(model, "neuron");
  Graph& graph = model.graph;
  const NodeId linear = graph.at("bert.encoder.layer.0.output.dense");
  const Value masked = graph.input(linear, 1);
  graph.set_input(linear, 1, graph.input(masked.node, 0));
  insert_lora(graph, model.state, {.rank = 2, .alpha = 4, .targets = {"layer.0.output.dense"}}, 1);
  graph.set_input(linear, 1, masked);
  const Tensor before = answer(model);
  EXPECT_EQ(shrink(model).parts.size(), 3u);
  EXPECT_EQ(model.state.at("bert.encoder.layer.0.output.dense.lora_A.weight").dim(1), 6);
  expect_same_numbers(answer(model), before);
}

}  // namespace
}  // namespace lathe::compress
