#pragma once

#include <memory>
#include <vector>

#include "lathe/data/dataset.h"
#include "lathe/train/wrapped_source.h"

namespace lathe::train {

/// The input of a training graph that takes a weight for the label of each example, 0 for others.
inline constexpr const char* kWeightedLabelsInput = "weighted_labels";

/// Examples whose labels are rows of numbers, as losses of numbers and of sets read them: f32[n,
/// w].
class WithTargets final : public WrappedSource {
 public:
  /// `targets`, example after example, `width` each.
  WithTargets(std::unique_ptr<ExampleSource> source, std::vector<float> targets,
              std::int64_t width);
  /// None: their labels are no classes.
  std::int32_t label(std::int64_t) const override { return data::kNoLabel; }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override;

 private:
  void set_labels(ExampleBatch& batch) const;

  std::vector<float> targets_;
  std::int64_t width_;
};

/// Examples whose classes count by a weight each: what a loss of weighted classes reads besides.
class WithClassWeights final : public WrappedSource {
 public:
  WithClassWeights(std::unique_ptr<ExampleSource> source, std::vector<float> weights)
      : WrappedSource(std::move(source)), weights_(std::move(weights)) {}
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;

 private:
  std::vector<float> weights_;
};

/// Replaces the loss of a classifier by the mean over examples that counts each by the weight of
/// its class, as PyTorch's CrossEntropyLoss has it: sum of w[y] loss(x, y) by sum of w[y].
void weigh_classes(Graph& graph);

/// A weight for each class by which all count alike in sum: examples / (classes * those of it), as
/// scikit-learn's `balanced`. Fails on a class that no example has.
std::vector<float> balanced_weights(const data::Dataset& examples);

}  // namespace lathe::train
