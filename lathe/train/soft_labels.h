#pragma once

#include <memory>

#include "lathe/train/wrapped_source.h"

namespace lathe::train {

/// The input of a training graph that takes a row of probabilities for each example.
inline constexpr const char* kSoftLabelsInput = "soft_labels";

/// Examples that come with soft labels besides their own: what teachers answered to them, known
/// before training starts, so that a step costs no teacher. Examples need no label of their own:
/// the feed then says that it is to be ignored.
class SoftlyLabelled final : public WrappedSource {
 public:
  /// `soft_labels` is f32[examples, labels].
  SoftlyLabelled(std::shared_ptr<ExampleSource> source, Tensor soft_labels);
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;

 private:
  Tensor soft_labels_;
};

}  // namespace lathe::train
