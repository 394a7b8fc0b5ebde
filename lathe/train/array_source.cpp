#include "lathe/train/array_source.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::train {

ArraySource::ArraySource(std::string input, std::vector<std::int64_t> shape,
                         std::span<const float> values, std::vector<std::int32_t> labels,
                         std::size_t copies, std::optional<ImageTraining> training)
    : input_(std::move(input)),
      shape_(std::move(shape)),
      width_(static_cast<std::size_t>(num_elements(shape_))),
      copies_(copies),
      values_(values),
      labels_(std::move(labels)),
      training_(std::move(training)) {
  check(values_.size() * copies_ == labels_.size() * width_, "an array for each label");
}

std::vector<std::int64_t> ArraySource::lengths() {
  return std::vector<std::int64_t>(labels_.size(), 1);
}

std::span<const float> ArraySource::stored(std::int64_t example) const {
  const std::size_t size = width_ / copies_;
  return values_.subspan(static_cast<std::size_t>(example) * size, size);
}

ExampleBatch ArraySource::training_batch(std::span<const std::int64_t> examples,
                                         std::int64_t epoch) {
  if (!training_) return evaluation_batch(examples);
  return batch_of(examples, [&](std::int64_t example, std::span<float> row) {
    augment(stored(example), training_->shape, training_->background, training_->augmentation,
            training_->seed, example, epoch, row);
  });
}

ExampleBatch ArraySource::evaluation_batch(std::span<const std::int64_t> examples) {
  return batch_of(examples, [&](std::int64_t example, std::span<float> row) {
    std::ranges::copy(stored(example), row.begin());
  });
}

ExampleBatch ArraySource::batch_of(std::span<const std::int64_t> examples,
                                   const WriteRow& write) const {
  const auto count = static_cast<std::int64_t>(examples.size());
  std::vector<std::int64_t> dims{count};
  dims.insert(dims.end(), shape_.begin(), shape_.end());
  Tensor rows(DType::F32, dims);
  std::vector<std::int32_t> labels, numbers;
  std::span<float> left = rows.mutable_data<float>();
  const std::size_t length = width_ / copies_;
  for (const std::int64_t example : examples) {
    check(example >= 0 && example < size(), "an example of the source");
    write(example, left.first(length));
    for (std::size_t copy = 1; copy < copies_; ++copy)
      std::ranges::copy(left.first(length), left.subspan(copy * length).begin());
    left = left.subspan(width_);
    labels.push_back(label(example));
    numbers.push_back(static_cast<std::int32_t>(example));
  }
  ExampleBatch batch{.feed = {}, .examples = {examples.begin(), examples.end()}, .tokens = count};
  batch.feed[input_] = std::move(rows);
  batch.feed["labels"] = Tensor::from<std::int32_t>({count}, std::span<const std::int32_t>(labels));
  batch.feed["examples"] =
      Tensor::from<std::int32_t>({count}, std::span<const std::int32_t>(numbers));
  return batch;
}

}  // namespace lathe::train
