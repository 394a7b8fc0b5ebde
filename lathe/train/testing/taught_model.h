#pragma once

#include <gtest/gtest.h>

#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/distillation.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/make_source.h"
#include "lathe/train/transformer_layers.h"

namespace lathe::train {

/// A small student, teachers of any shape, and a batch of two sequences for them, to look at the
/// parts of a loss.
class TaughtModel : public testing::Test {
 protected:
  struct Shape {
    std::int64_t width = 8, heads = 2, layers = 2;
  };
  static io::Model make_model(std::uint64_t seed, const Shape& shape) {
    io::Model model =
        io::load_model("bert-tiny", {.task = "classify",
                                     .inputs = {"input_ids", "attention_mask", "labels"},
                                     .config = {{"vocab_size", std::int64_t{11}},
                                                {"hidden_size", shape.width},
                                                {"num_hidden_layers", shape.layers},
                                                {"num_attention_heads", shape.heads},
                                                {"intermediate_size", 2 * shape.width},
                                                {"max_position_embeddings", std::int64_t{6}},
                                                {"initializer_range", 0.5}},
                                     .seed = seed});
    model.directory = "somewhere";
    return model;
  }

  TaughtModel() {
    feed_["input_ids"] = Tensor::from<std::int32_t>({7}, {2, 7, 3, 10, 2, 9, 4});
    feed_["offsets"] = Tensor::from<std::int32_t>({3}, {0, 4, 7});
    feed_["labels"] = Tensor::from<std::int32_t>({2}, {1, 0});
    feed_["examples"] = Tensor::from<std::int32_t>({2}, {5, 3});
    set_step(1);
  }
  void set_step(std::int32_t step) {
    feed_["random"] = Tensor::from<std::int32_t>({3}, {1, 0, step});
  }

  /// The packed graph of a model without dropout.
  static Graph packed(const io::Model& model) {
    Graph graph = model.graph;
    pack_inputs(graph, model);
    run_pass("remove-dropout", graph);
    return graph;
  }
  /// The student's, with the loss to be taught by; `state_` has what it needs.
  Graph taught(const DistillationOptions& options) {
    Graph graph = packed(student_);
    state_ = student_.state;
    states_ = add_distillation(graph, state_, options);
    return graph;
  }

  double loss_sum(Graph graph, const Feed& feed) const {
    const Value sum = find_loss(graph).sum;
    for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
    graph.set_output("sum", sum);
    return engine::make_executor(graph, state_, {.device = "reference"})->run(feed).at("sum").at(0);
  }
  /// What a distillation adds to the loss of the labels.
  double added(const DistillationOptions& options, const Feed& feed) {
    const double with = loss_sum(taught(options), feed);
    return with - loss_sum(taught({}), feed);
  }
  double added(const DistillationOptions& options) { return added(options, feed_); }

  /// Values of a model run alone on the batch.
  std::vector<Tensor> values(const io::Model& model, const std::vector<Value>& wanted) const {
    Graph graph = packed(model);
    for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      graph.set_output(fmt::format("{}", i), wanted[i]);
    const Feed results =
        engine::make_executor(graph, model.state, {.device = "reference"})->run(feed_);
    std::vector<Tensor> found;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      found.push_back(results.at(fmt::format("{}", i)));
    return found;
  }
  static TransformerLayers layers_of(const io::Model& model) {
    const Graph graph = packed(model);
    return find_transformer_layers(graph, *graph.output("logits"));
  }

  io::Model student_ = make_model(1, {});
  State state_;
  DistillationStates states_;
  Feed feed_;
};

}  // namespace lathe::train
