#include "lathe/train/soft_labels.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/dataset.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {

SoftlyLabelled::SoftlyLabelled(std::shared_ptr<ExampleSource> source, Tensor soft_labels)
    : WrappedSource(std::move(source)), soft_labels_(std::move(soft_labels)) {
  check(soft_labels_.rank() == 2 && soft_labels_.dim(0) == size(),
        "a row of soft labels for each example");
}

ExampleBatch SoftlyLabelled::training_batch(std::span<const std::int64_t> examples,
                                            std::int64_t epoch) {
  ExampleBatch batch = WrappedSource::training_batch(examples, epoch);
  const std::int64_t width = soft_labels_.dim(1);
  Tensor rows(DType::F32, {static_cast<std::int64_t>(batch.examples.size()), width});
  float* next = rows.mutable_data<float>().data();
  for (const std::int64_t example : batch.examples)
    next = std::copy_n(soft_labels_.data<float>().begin() + example * width, width, next);
  batch.feed[kSoftLabelsInput] = std::move(rows);
  for (std::int32_t& label : batch.feed.at("labels").mutable_data<std::int32_t>())
    if (label == data::kNoLabel) label = kIgnoredLabel;
  return batch;
}

}  // namespace lathe::train
