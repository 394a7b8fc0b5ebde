#pragma once

#include <memory>

#include "lathe/train/example_source.h"

namespace lathe::train {

/// The input of a training graph that takes a row of probabilities for each example.
inline constexpr const char* kSoftLabelsInput = "soft_labels";

/// Examples that come with soft labels besides their own: what teachers answered to them, known
/// before training starts, so that a step costs no teacher. Examples need no label of their own:
/// the feed then says that it is to be ignored.
class SoftlyLabelled final : public ExampleSource {
 public:
  /// `soft_labels` is f32[examples, labels].
  SoftlyLabelled(std::unique_ptr<ExampleSource> source, Tensor soft_labels);
  std::int64_t size() const override { return source_->size(); }
  std::vector<std::int64_t> lengths() override { return source_->lengths(); }
  std::int32_t label(std::int64_t example) const override { return source_->label(example); }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override {
    return source_->evaluation_batch(examples);
  }

 private:
  std::unique_ptr<ExampleSource> source_;
  Tensor soft_labels_;
};

}  // namespace lathe::train
