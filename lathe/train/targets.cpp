#include "lathe/train/targets.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/train/find_loss.h"
#include "lathe/train/loss_builder.h"

namespace lathe::train {

WithTargets::WithTargets(std::unique_ptr<ExampleSource> source, std::vector<float> targets,
                         std::int64_t width)
    : WrappedSource(std::move(source)), targets_(std::move(targets)), width_(width) {
  check(static_cast<std::int64_t>(targets_.size()) == size() * width_,
        "a row of targets for each example");
}

void WithTargets::set_labels(ExampleBatch& batch) const {
  Tensor rows(DType::F32, {static_cast<std::int64_t>(batch.examples.size()), width_});
  float* next = rows.mutable_data<float>().data();
  for (const std::int64_t example : batch.examples)
    next = std::copy_n(targets_.begin() + example * width_, width_, next);
  batch.feed["labels"] = std::move(rows);
}

ExampleBatch WithTargets::training_batch(std::span<const std::int64_t> examples,
                                         std::int64_t epoch) {
  ExampleBatch batch = WrappedSource::training_batch(examples, epoch);
  set_labels(batch);
  return batch;
}

ExampleBatch WithTargets::evaluation_batch(std::span<const std::int64_t> examples) {
  ExampleBatch batch = WrappedSource::evaluation_batch(examples);
  set_labels(batch);
  return batch;
}

ExampleBatch WithClassWeights::training_batch(std::span<const std::int64_t> examples,
                                              std::int64_t epoch) {
  ExampleBatch batch = WrappedSource::training_batch(examples, epoch);
  const auto width = static_cast<std::int64_t>(weights_.size());
  Tensor rows(DType::F32, {static_cast<std::int64_t>(batch.examples.size()), width});
  const std::span<float> values = rows.mutable_data<float>();
  for (std::size_t row = 0; row < batch.examples.size(); ++row) {
    const auto chosen = static_cast<std::size_t>(label(batch.examples[row]));
    values[row * weights_.size() + chosen] = weights_.at(chosen);
  }
  batch.feed[kWeightedLabelsInput] = std::move(rows);
  return batch;
}

void weigh_classes(Graph& graph) {
  find_loss(graph);  // says what is missing
  const std::optional<Value> logits = graph.output("logits");
  if (!logits) fail("a model without logits has no classes to weigh");
  const Type type = graph.type(*logits);
  LossBuilder loss(graph, "weighted_classes");
  const Value weights = loss.input(kWeightedLabelsInput, type);
  const Value likelihoods =
      loss.add("likelihoods", "log_softmax", {*logits}, {{"axis", std::int64_t{-1}}});
  const Type scalar{type.dtype, {}};
  const Value agreement = loss.add(
      "agreement", "sum_to", {loss.add("agreements", "mul", {weights, likelihoods})}, {}, {scalar});
  const Value count = loss.add("count", "sum_to", {weights}, {}, {scalar});
  graph.set_output("loss", loss.add("mean", "div", {loss.times("loss", agreement, -1), count}));
}

std::vector<float> balanced_weights(const data::Dataset& examples) {
  std::vector<std::int64_t> counts(examples.label_names.size());
  for (const std::int32_t label : examples.labels()) ++counts.at(static_cast<std::size_t>(label));
  std::vector<float> weights;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0)
      fail("class-weights balanced: no example has the label {}", examples.label_names[label]);
    weights.push_back(static_cast<float>(
        static_cast<double>(examples.examples.size()) /
        (static_cast<double>(counts.size()) * static_cast<double>(counts[label]))));
  }
  return weights;
}

}  // namespace lathe::train
