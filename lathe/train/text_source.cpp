#include "lathe/train/text_source.h"

namespace lathe::train {
namespace {

ExampleBatch with_feed(const data::Batch& batch, Feed feed) {
  return {.feed = std::move(feed), .examples = batch.example_indices, .tokens = batch.num_tokens()};
}

// Labels of a padded language model would have to be padded too, which nobody needs: what is
// compared with other frameworks is a classifier's padded form.
Feed padded_feed(const data::Batch& batch, std::int32_t padding_id) {
  const data::PaddedBatch padded = data::to_padded(batch, padding_id);
  const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
  };
  Feed feed;
  feed["input_ids"] = tensor({padded.num_rows, padded.length}, padded.ids);
  feed["attention_mask"] = tensor({padded.num_rows, padded.length}, padded.mask);
  feed["token_type_ids"] = Tensor(DType::I32, {padded.num_rows, padded.length});
  feed["labels"] = tensor({padded.num_rows}, batch.labels);
  return feed;
}

}  // namespace

Feed evaluation_feed(const data::Batch& batch, const TextFeeding& feeding) {
  return feeding.padding_id ? padded_feed(batch, *feeding.padding_id)
                            : make_validation_feed(batch, feeding.objective);
}

ExampleBatch TokenizedTexts::training_batch(std::span<const std::int64_t> examples,
                                            std::int64_t epoch) {
  const data::Batch batch = data::make_batch(tokens_, examples);
  return with_feed(batch, make_training_feed(batch, feeding_.objective, epoch));
}

ExampleBatch TokenizedTexts::evaluation_batch(std::span<const std::int64_t> examples) {
  const data::Batch batch = data::make_batch(tokens_, examples);
  return with_feed(batch, evaluation_feed(batch, feeding_));
}

ExampleBatch StreamedTexts::training_batch(std::span<const std::int64_t> examples,
                                           std::int64_t epoch) {
  const data::Batch batch = stream_.batch(examples);
  return with_feed(batch, make_training_feed(batch, feeding_.objective, epoch));
}

ExampleBatch StreamedTexts::evaluation_batch(std::span<const std::int64_t> examples) {
  const data::Batch batch = stream_.batch(examples);
  return with_feed(batch, evaluation_feed(batch, feeding_));
}

}  // namespace lathe::train
