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
  Tensor types(DType::I32, {padded.num_rows, padded.length});
  const std::span<std::int32_t> values = types.mutable_data<std::int32_t>();
  for (std::size_t row = 0; row < batch.first_lengths.size(); ++row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row) * padded.length;
    std::fill(begin + batch.first_lengths[row], begin + batch.offsets[row + 1] - batch.offsets[row],
              1);
  }
  feed["token_type_ids"] = std::move(types);
  if (batch.token_labels.empty())
    feed["labels"] = tensor({padded.num_rows}, batch.labels);
  else
    feed["labels"] =
        tensor({padded.num_rows, padded.length}, data::padded_labels(batch, padded.length));
  return feed;
}

}  // namespace

Feed evaluation_feed(const data::Batch& batch, const TextFeeding& feeding) {
  return feeding.padding_id ? padded_feed(batch, *feeding.padding_id)
                            : make_validation_feed(batch, feeding.objective);
}

std::vector<std::int64_t> UnkeptTexts::lengths() {
  std::vector<std::int64_t> all;
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < dataset_.examples.size(); ++i) {
    ids.clear();
    data::encode_example(dataset_, i, *tokenizer_, {ids}, max_length_, truncation_);
    all.push_back(static_cast<std::int64_t>(ids.size()));
  }
  return all;
}

data::Batch UnkeptTexts::batch(std::span<const std::int64_t> examples) const {
  data::Batch batch;
  for (const std::int64_t example : examples) {
    const auto index = static_cast<std::size_t>(example);
    const std::int32_t first = data::encode_example(
        dataset_, index, *tokenizer_, {batch.ids, &batch.token_labels}, max_length_, truncation_);
    if (dataset_.has_pairs) batch.first_lengths.push_back(first);
    batch.offsets.push_back(static_cast<std::int32_t>(batch.ids.size()));
    batch.labels.push_back(dataset_.examples[index].label);
    batch.example_indices.push_back(example);
  }
  return batch;
}

ExampleBatch UnkeptTexts::training_batch(std::span<const std::int64_t> examples,
                                         std::int64_t epoch) {
  const data::Batch tokens = batch(examples);
  return with_feed(tokens, make_training_feed(tokens, feeding_.objective, epoch));
}

ExampleBatch UnkeptTexts::evaluation_batch(std::span<const std::int64_t> examples) {
  const data::Batch tokens = batch(examples);
  return with_feed(tokens, evaluation_feed(tokens, feeding_));
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
