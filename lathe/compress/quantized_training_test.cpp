// A quantized BERT through everything that needs quantizers, training and the engine at once.

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/core/pass.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/train/text_source.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_graph.h"

namespace lathe::compress {
namespace {

// Two texts: "a fine film" and "the poor plot .".
data::TokenizedDataset texts() {
  return {.ids = {2, 5, 8, 7, 3, 2, 6, 9, 13, 17, 3}, .offsets = {0, 5, 11}, .labels = {1, 0}};
}

data::Dataset opinions() {
  data::Dataset dataset;
  dataset.label_names = {"0", "1"};
  for (int i = 0; i < 16; ++i)
    dataset.examples.push_back({i % 2 == 1 ? "a fine film" : "the poor plot .", i % 2});
  return dataset;
}

class QuantizedBert : public testing::Test {
 protected:
  io::Model quantized(const RoleFormats& formats) const {
    io::Model model = io::load_model(directory_, {.task = "classify"});
    train::TokenizedTexts data(texts(), {});
    QuantizeOptions options;
    options.rules = {{.formats = formats}};
    quantize_model(model, options, &data, {});
    return model;
  }
  static Feed feed() {
    const data::TokenizedDataset data = texts();
    Feed result;
    result["input_ids"] = Tensor::from<std::int32_t>({11}, std::span(data.ids));
    result["offsets"] = Tensor::from<std::int32_t>({3}, {0, 5, 11});
    result["labels"] = Tensor::from<std::int32_t>({2}, std::span(data.labels));
    return result;
  }

  const RoleFormats formats_{{TensorRole::Weights, "int:6,channel"},
                             {TensorRole::Inputs, "int:6,asymmetric"},
                             {TensorRole::Bias, "fixed:8,4"},
                             {TensorRole::Embeddings, "int:8"},
                             {TensorRole::Attention, "mxint:8,block=4"},
                             {TensorRole::AttentionWeights, "int:6,asymmetric"}};
  io::ScratchDirectory scratch_;
  std::string directory_ = io::write_tiny_bert(scratch_, "m");
};

TEST_F(QuantizedBert, GivesTheSameOnEveryPathThreadCountAndByReference) {
  const io::Model model = quantized(formats_);
  Graph graph = model.graph;
  run_pass("pack-sequences", graph);
  run_pass("remove-dropout", graph);
  const Feed expected =
      engine::make_executor(graph, model.state, {.device = "reference"})->run(feed());
  for (const Isa isa : engine::supported_isas()) {
    SCOPED_TRACE(name(isa));
    ThreadPool two(2);
    const Feed outputs = engine::make_executor(graph, model.state, {.isa = isa})->run(feed());
    // No value lies so near the middle of two codes that a float's rounding decides.
    engine::expect_near(outputs, expected, 2e-5);
    engine::expect_identical(
        engine::make_executor(graph, model.state, {.pool = &two, .isa = isa})->run(feed()),
        outputs);
  }
}

TEST_F(QuantizedBert, LearnsWeightsAndScalesInAStepAsTheReferenceDoes) {
  const io::Model model = quantized(formats_);
  State state = model.state;
  const train::TrainingGraph training = train::make_training_graph(
      model, {.optimizer = train::OptimizerKind::Sgd, .dropout = false}, state);
  Feed batch = feed();
  batch["examples"] = Tensor::from<std::int32_t>({2}, {0, 1});
  batch["random"] = Tensor::from<std::int32_t>({3}, {1, 0, 1});
  batch["learning_rate"] = Tensor::from<float>({}, {1e-2f});
  const auto step = [&](const engine::ExecutionOptions& options) {
    const auto executor = engine::make_executor(training.graph, state, options);
    Feed known;
    for (const auto& [name, tensor] : batch)
      if (training.graph.find(name)) known[name] = tensor;
    executor->run(known);
    return executor->state();
  };
  const State expected = step({.device = "reference"});
  ThreadPool two(2);
  const State alone = step({});
  engine::expect_near(alone, expected, 1e-5);
  engine::expect_identical(step({.pool = &two}), alone);
  int scales = 0;
  for (const std::string& name : training.trained) {
    scales += name.ends_with(".scale");
    // The key's bias cannot matter: softmax does not see what all keys have in common.
    if (!name.ends_with("key.bias")) {
      EXPECT_FALSE(identical(alone.at(name), model.state.at(name))) << name;
    }
    EXPECT_FALSE(name.ends_with(".zero")) << name;
    EXPECT_TRUE(alone.contains("optimizer.velocity." + name)) << name;
  }
  // A velocity each, and the optimizer's guard.
  EXPECT_EQ(alone.size(), model.state.size() + training.trained.size() + 1);
  // 8 weights, 6 inputs of linears, 3 tables.
  EXPECT_EQ(scales, 17);
}

TEST_F(QuantizedBert, LearnsTheScalesOfBinaryRows) {
  io::Model model = quantized({{TensorRole::Weights, "binary:learned"}});
  const State before = model.state;
  train::TrainOptions options;
  options.trainer.batch_examples = 8;
  options.trainer.learning_rate = 1e-2;
  const io::Model trained = train::train_model(std::move(model), opinions(), {}, options).model;
  int scales = 0;
  for (const auto& [name, tensor] : trained.state) {
    if (!name.ends_with(".scale")) continue;
    ++scales;
    EXPECT_FALSE(identical(tensor, before.at(name))) << name;
  }
  EXPECT_EQ(scales, 8);
  // Codes of a bit each are what is written, and they mean the same.
  io::Model packed = trained;
  pack_model(packed, false);
  EXPECT_FALSE(packed.graph.nodes_of("decode").empty());
  const auto answers = [&](const io::Model& of) {
    Graph graph = of.graph;
    run_pass("pack-sequences", graph);
    run_pass("remove-dropout", graph);
    return engine::make_executor(graph, of.state, {})->run(feed());
  };
  engine::expect_near(answers(packed), answers(trained), 1e-6);
}

TEST_F(QuantizedBert, KeepsScalesPositiveAtARateThatIsFarTooHigh) {
  io::Model model =
      quantized({{TensorRole::Weights, "int:4,channel"}, {TensorRole::Inputs, "int:4,asymmetric"}});
  train::TrainOptions options;
  options.trainer.epochs = 20;
  options.trainer.batch_examples = 8;
  options.trainer.learning_rate = 0.05;
  const State after = train::train_model(std::move(model), opinions(), {}, options).model.state;
  for (const auto& [name, tensor] : after) {
    if (!name.ends_with(".scale")) continue;
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      EXPECT_GT(tensor.at(i), 0) << name << ", element " << i;
  }
}

TEST_F(QuantizedBert, LearnsWithFourBits) {
  io::Model model = quantized({{TensorRole::Weights, "int:4,channel"},
                               {TensorRole::Inputs, "int:4,asymmetric"},
                               {TensorRole::Attention, "int:4"},
                               {TensorRole::AttentionWeights, "int:4,asymmetric"}});
  train::TrainOptions options;
  options.graph.dropout = false;  // a tenth of 8 features is too much to learn through
  options.trainer.epochs = 60;
  options.trainer.batch_examples = 8;
  options.trainer.learning_rate = 1e-2;
  const train::TrainOutcome outcome = train::train_model(std::move(model), opinions(), {}, options);
  io::Model packed = outcome.model;
  pack_model(packed);
  const auto answer = [](Graph graph, const State& state) {
    run_pass("pack-sequences", graph);
    run_pass("remove-dropout", graph);
    return engine::make_executor(graph, state)->run(feed());
  };
  const Feed trained = answer(outcome.model.graph, outcome.model.state);
  EXPECT_LT(trained.at("loss").at(0), 0.1);
  engine::expect_identical(answer(packed.graph, packed.state), trained);
  EXPECT_EQ(find_rounded_attention(packed.graph).size(), 1u);
  make_float(packed.graph, packed.state);
  EXPECT_FALSE(is_quantized(packed.graph));
}

}  // namespace
}  // namespace lathe::compress
