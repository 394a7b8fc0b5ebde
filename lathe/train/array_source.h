#pragma once

#include <string>

#include "lathe/train/example_source.h"

namespace lathe::train {

/// Examples that are arrays of numbers of one shape: rows of a table, images.
class ArraySource final : public ExampleSource {
 public:
  /// `values` holds the examples one after another, each of `shape`, for the graph's input of that
  /// name; it must outlive the source. `labels` has one for each.
  ArraySource(std::string input, std::vector<std::int64_t> shape, std::span<const float> values,
              std::vector<std::int32_t> labels);
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::vector<std::int64_t> lengths() override;
  std::int32_t label(std::int64_t example) const override {
    return labels_[static_cast<std::size_t>(example)];
  }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override;

 private:
  std::string input_;
  std::vector<std::int64_t> shape_;
  std::size_t width_;  ///< numbers of an example
  std::span<const float> values_;
  std::vector<std::int32_t> labels_;
};

}  // namespace lathe::train
