#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lathe/train/augmentation.h"
#include "lathe/train/example_source.h"

namespace lathe::train {

/// How images are augmented while a model trains.
struct ImageTraining {
  Augmentation augmentation = {};
  std::vector<std::int64_t> shape = {};  ///< of an image: {channels, height, width}
  std::vector<float> background = {};    ///< of each channel
  std::uint64_t seed = 0;
};

/// Examples that are arrays of numbers of one shape: rows of a table, images.
class ArraySource final : public ExampleSource {
 public:
  /// `values` holds the examples one after another, each of `shape`, for the graph's input of that
  /// name; it must outlive the source. `labels` has one for each. Of several copies every example
  /// is so many times what is stored: grey images for a model that reads colours.
  ArraySource(std::string input, std::vector<std::int64_t> shape, std::span<const float> values,
              std::vector<std::int32_t> labels, std::size_t copies = 1,
              std::optional<ImageTraining> training = {});
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::vector<std::int64_t> lengths() override;
  std::int32_t label(std::int64_t example) const override {
    return labels_[static_cast<std::size_t>(example)];
  }
  ExampleBatch training_batch(std::span<const std::int64_t> examples, std::int64_t epoch) override;
  ExampleBatch evaluation_batch(std::span<const std::int64_t> examples) override;

 private:
  using WriteRow = std::function<void(std::int64_t example, std::span<float> row)>;
  ExampleBatch batch_of(std::span<const std::int64_t> examples, const WriteRow& write) const;
  std::span<const float> stored(std::int64_t example) const;

  std::string input_;
  std::vector<std::int64_t> shape_;
  std::size_t width_;  ///< numbers of an example
  std::size_t copies_;
  std::span<const float> values_;
  std::vector<std::int32_t> labels_;
  std::optional<ImageTraining> training_;
};

}  // namespace lathe::train
