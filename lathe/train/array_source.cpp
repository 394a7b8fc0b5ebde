#include "lathe/train/array_source.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::train {

ArraySource::ArraySource(std::string input, std::vector<std::int64_t> shape,
                         std::span<const float> values, std::vector<std::int32_t> labels)
    : input_(std::move(input)),
      shape_(std::move(shape)),
      width_(static_cast<std::size_t>(num_elements(shape_))),
      values_(values),
      labels_(std::move(labels)) {
  check(values_.size() == labels_.size() * width_, "an array for each label");
}

std::vector<std::int64_t> ArraySource::lengths() {
  return std::vector<std::int64_t>(labels_.size(), 1);
}

ExampleBatch ArraySource::training_batch(std::span<const std::int64_t> examples, std::int64_t) {
  return evaluation_batch(examples);
}

ExampleBatch ArraySource::evaluation_batch(std::span<const std::int64_t> examples) {
  const auto count = static_cast<std::int64_t>(examples.size());
  std::vector<std::int64_t> dims{count};
  dims.insert(dims.end(), shape_.begin(), shape_.end());
  Tensor rows(DType::F32, dims);
  std::vector<std::int32_t> labels, numbers;
  float* next = rows.mutable_data<float>().data();
  for (const std::int64_t example : examples) {
    check(example >= 0 && example < size(), "an example of the source");
    const auto values = values_.subspan(static_cast<std::size_t>(example) * width_, width_);
    next = std::copy(values.begin(), values.end(), next);
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
