#include "lathe/train/training_feed.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::train {
namespace {

// Masks of the validation set are those of an epoch that no run reaches, and always the same.
constexpr std::int64_t kValidationEpoch = 0x7FFFFFFF;

Tensor vector_of(const std::vector<std::int32_t>& values) {
  return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                    std::span<const std::int32_t>(values));
}

Feed data_feed(const data::Batch& batch, const std::vector<std::int32_t>& ids) {
  Feed feed;
  feed["input_ids"] = vector_of(ids);
  feed["offsets"] = vector_of(batch.offsets);
  feed["examples"] = vector_of({batch.example_indices.begin(), batch.example_indices.end()});
  return feed;
}

std::vector<std::int32_t> next_tokens(const data::Batch& batch) {
  std::vector<std::int32_t> labels(batch.ids.size(), kIgnoredLabel);
  for (std::size_t sequence = 0; sequence < batch.labels.size(); ++sequence)
    for (auto token = static_cast<std::size_t>(batch.offsets[sequence]);
         token + 1 < static_cast<std::size_t>(batch.offsets[sequence + 1]); ++token)
      labels[token] = batch.ids[token + 1];
  return labels;
}

Feed make_feed(const data::Batch& batch, const Objective& objective) {
  Feed feed = data_feed(batch, batch.ids);
  if (objective.name == "causal-lm") {
    feed["labels"] = vector_of(next_tokens(batch));
  } else if (objective.name == "regression") {
    const std::vector<float> labels(batch.labels.begin(), batch.labels.end());
    feed["labels"] = Tensor::from<float>({static_cast<std::int64_t>(labels.size()), 1},
                                         std::span<const float>(labels));
  } else {
    feed["labels"] = vector_of(batch.labels);
  }
  return feed;
}

}  // namespace

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> kNames{"causal-lm", "classify", "mlm", "regression"};
  return kNames;
}

std::string task_of(const std::string& objective) {
  const std::vector<std::string>& names = objective_names();
  if (std::find(names.begin(), names.end(), objective) == names.end())
    throw unknown_name("objective", objective, names);
  return objective == "regression" ? "classify" : objective;
}

Objective make_objective(const std::string& name, const data::Tokenizer& tokenizer,
                         double mask_share, std::uint64_t seed) {
  task_of(name);  // refuses an unknown one
  if (name == "mlm" && tokenizer.mask_id() < 0)
    fail("the vocabulary has no [MASK], which the objective mlm needs");
  return {.name = name,
          .masking = {.share = mask_share,
                      .mask_id = tokenizer.mask_id(),
                      .vocabulary_size = tokenizer.vocabulary_size(),
                      .never = tokenizer.special_ids(),
                      .seed = seed}};
}

Feed make_training_feed(const data::Batch& batch, const Objective& objective, std::int64_t epoch) {
  if (objective.name != "mlm") return make_feed(batch, objective);
  const MaskedBatch masked = mask_tokens(batch, objective.masking, epoch);
  Feed feed = data_feed(batch, masked.ids);
  feed["masked"] = vector_of(masked.chosen);
  feed["labels"] = vector_of(masked.labels);
  return feed;
}

Feed make_validation_feed(const data::Batch& batch, const Objective& objective) {
  if (objective.name != "mlm") return make_feed(batch, objective);
  const MaskedBatch masked = mask_tokens(batch, objective.masking, kValidationEpoch);
  std::vector<std::int32_t> labels(batch.ids.size(), kIgnoredLabel);
  for (std::size_t i = 0; i < masked.chosen.size(); ++i)
    labels[static_cast<std::size_t>(masked.chosen[i])] = masked.labels[i];
  Feed feed = data_feed(batch, masked.ids);
  feed["labels"] = vector_of(labels);
  return feed;
}

void set_step_inputs(Feed& feed, double learning_rate, std::uint64_t seed, std::int64_t step,
                     bool is_applied) {
  feed["learning_rate"] = Tensor::from<float>({}, {static_cast<float>(learning_rate)});
  feed["apply"] = Tensor::from<float>({}, {is_applied ? 1.0f : 0.0f});
  const auto word = [](std::uint64_t bits) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  };
  feed["random"] = Tensor::from<std::int32_t>(
      {3}, {word(seed), word(seed >> 32), word(static_cast<std::uint64_t>(step))});
}

}  // namespace lathe::train
