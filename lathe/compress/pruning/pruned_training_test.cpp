// What is pruned stays pruned: every granularity through every way to go on with a model.

#include <gtest/gtest.h>

#include <algorithm>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/pruning/prune_model.h"
#include "lathe/compress/quantize_model.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/core/parameters.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/train/train_model.h"

namespace lathe::compress {
namespace {

data::Dataset opinions() {
  data::Dataset dataset;
  dataset.label_names = {"0", "1"};
  for (int i = 0; i < 16; ++i)
    dataset.examples.push_back({i % 2 == 1 ? "a fine film" : "the poor plot .", i % 2});
  return dataset;
}

std::int64_t zeros(const Tensor& tensor) {
  return std::ranges::count(tensor.data<float>(), 0.0f);
}

// What the readers of a parameter get in its place, once its masks and quantizers are computed.
Tensor read_value(const io::Model& model, NodeId parameter) {
  const Graph& graph = model.graph;
  Value value{parameter, 0};
  const Parameters parameters(graph);
  for (bool is_parameter = true; is_parameter;) {
    is_parameter = false;
    for (const NodeId reader : graph.users(value.node))
      if (parameters.contains({reader, 0}) && graph.type({reader, 0}) == graph.type(value)) {
        value = {reader, 0};
        is_parameter = true;
        break;
      }
  }
  return ops::evaluate_parameter(graph, model.state, value);
}

class EveryGranularity : public testing::TestWithParam<const char*> {
 protected:
  EveryGranularity() : directory_(io::write_tiny_bert(scratch_, "m")) {}

  io::Model load() const {
    return io::load_model(directory_, {.inputs = {"input_ids", "attention_mask", "labels"}});
  }

  // Prunes half of the model, and remembers the holes.
  void prune(io::Model& model) {
    PruningSettings settings{.granularity = parse_granularity(GetParam()),
                             .scope = PruningScope::Global};
    if (settings.granularity->kind != Granularity::Kind::SomeOfSeveral) settings.sparsity = 0.5;
    if (settings.granularity->kind == Granularity::Kind::Vocabulary) settings.method = "l1";
    const PruneResult result = prune_model(model, {.request = {.settings = settings}}, nullptr, {});
    std::int64_t granules = 0, pruned = 0;
    for (const UnitReport& unit : result.units) {
      granules += unit.granules;
      pruned += unit.pruned;
    }
    const bool is_all = settings.granularity->kind == Granularity::Kind::SomeOfSeveral;
    EXPECT_EQ(pruned, is_all ? granules : share_of(0.5, granules));
    masks_ = find_masks(model.graph, model.state);
    ASSERT_FALSE(masks_.empty());
  }

  io::Model train(io::Model model, train::OptimizerKind optimizer,
                  const std::vector<std::string>& train_only = {}) const {
    train::TrainOptions options;
    options.trainer.epochs = 2;
    options.trainer.batch_examples = 4;
    options.trainer.learning_rate = 0.01;
    options.graph.optimizer = optimizer;
    options.graph.weight_decay = 0.1;
    options.graph.train_only = train_only;
    return train::train_model(std::move(model), opinions(), {}, options).model;
  }

  // Every hole is in the value that layers read.
  void expect_holes(const io::Model& model) const {
    for (const auto& [name, mask] : masks_) {
      SCOPED_TRACE(name);
      const std::optional<NodeId> parameter = model.graph.find(name);
      ASSERT_TRUE(parameter.has_value());
      const Tensor value = read_value(model, *parameter);
      for (std::int64_t i = 0; i < mask.num_elements(); ++i) {
        if (mask.at(i) != 0) continue;
        ASSERT_EQ(value.at(i), 0) << i;
      }
    }
  }

  // The states of a plain model have the holes, and no other zeros.
  void expect_count(const io::Model& model) const {
    for (const auto& [name, mask] : masks_)
      EXPECT_EQ(zeros(model.state.at(name)), zeros(mask)) << name;
  }

  // Through a file, with other inputs, and as other programs read it.
  void expect_holes_in_files(const io::Model& model, const std::string& name) const {
    io::write_checkpoint(scratch_ / name, model);
    const std::string path = (scratch_ / name).string();
    expect_holes(io::load_model(path));
    expect_holes(io::load_model(path, {.inputs = {"input_ids"}}));
    io::write_huggingface(scratch_ / (name + "-export"), model);
    const io::Model exported = io::load_model((scratch_ / (name + "-export")).string());
    EXPECT_TRUE(exported.graph.nodes_of("mul").empty());
    expect_count(exported);
  }

  io::ScratchDirectory scratch_;
  std::string directory_;
  State masks_;
};

TEST_P(EveryGranularity, StaysThroughTraining) {
  for (const train::OptimizerKind optimizer :
       {train::OptimizerKind::AdamW, train::OptimizerKind::Sgd}) {
    SCOPED_TRACE(name(optimizer));
    io::Model model = load();
    prune(model);
    expect_count(model);
    const io::Model trained = train(model, optimizer);
    expect_holes(trained);
    expect_count(trained);
    expect_holes_in_files(trained, std::string(name(optimizer)));
    const std::string some = masks_.begin()->first;
    EXPECT_FALSE(identical(trained.state.at(some), model.state.at(some)));
  }
}

TEST_P(EveryGranularity, StaysThroughRoundingAfterIt) {
  for (const char* const format : {"int:4,channel", "mxint:4,block=4", "binary:scaled"}) {
    SCOPED_TRACE(format);
    io::Model model = load();
    prune(model);
    quantize_model(model,
                   {.rules = {{.formats = {{TensorRole::Weights, format},
                                           {TensorRole::Bias, "fixed:8,4"},
                                           {TensorRole::Embeddings, format}}}}},
                   nullptr, {});
    expect_holes(model);
    io::Model trained = train(model, train::OptimizerKind::AdamW);
    expect_holes(trained);
    pack_model(trained);
    io::write_checkpoint(scratch_ / format, trained);
    io::Model loaded = io::load_model((scratch_ / format).string(), {.with_masters = true});
    io::Model plain = loaded;
    make_float(plain.graph, plain.state);
    expect_holes(plain);
    unpack_model(loaded);
    expect_holes(train(loaded, train::OptimizerKind::Sgd));
  }
}

TEST_P(EveryGranularity, StaysThroughRoundingBeforeIt) {
  for (const char* const format : {"int:4,channel", "binary", "binary:residual,2"}) {
    SCOPED_TRACE(format);
    io::Model model = load();
    quantize_model(model, {.rules = {{.formats = {{TensorRole::Weights, format}}}}}, nullptr, {});
    prune(model);
    expect_holes(model);
    io::Model trained = train(model, train::OptimizerKind::AdamW);
    expect_holes(trained);
    pack_model(trained, false);
    make_float(trained.graph, trained.state);
    expect_holes(trained);
  }
}

TEST_P(EveryGranularity, StaysThroughLora) {
  for (const bool is_pruned_first : {true, false}) {
    SCOPED_TRACE(is_pruned_first);
    io::Model model = load();
    const auto add = [&] {
      insert_lora(model.graph, model.state, {.rank = 2, .dropout = 0.1, .targets = {"."}}, 1);
    };
    if (is_pruned_first) {
      prune(model);
      add();
    } else {
      add();
      model = train(model, train::OptimizerKind::AdamW, lora_parameters(model.graph, {}));
      prune(model);
    }
    io::Model trained = train(model, train::OptimizerKind::AdamW, lora_parameters(model.graph, {}));
    EXPECT_GT(fuse_lora(trained.graph, trained.state), 0);
    expect_holes(trained);
    expect_count(trained);
    expect_holes_in_files(trained, is_pruned_first ? "first" : "second");
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryGranularity,
                         testing::Values("element", "2:4", "1:4", "1x4", "4x4", "row", "column",
                                         "head", "neuron", "vocabulary"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, ':', '_');
                           return name;
                         });

}  // namespace
}  // namespace lathe::compress
