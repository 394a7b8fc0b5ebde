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

// 0 for the tokens of a text or the first of a pair, 1 for those of the second.
std::vector<std::int32_t> token_types(const data::Batch& batch) {
  std::vector<std::int32_t> types(batch.ids.size());
  for (std::size_t i = 0; i < batch.first_lengths.size(); ++i)
    std::fill(types.begin() + batch.offsets[i] + batch.first_lengths[i],
              types.begin() + batch.offsets[i + 1], 1);
  return types;
}

Feed data_feed(const data::Batch& batch, const std::vector<std::int32_t>& ids,
               const Objective& objective) {
  Feed feed;
  feed["input_ids"] = vector_of(ids);
  if (objective.has_token_types) feed["token_type_ids"] = vector_of(token_types(batch));
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
  Feed feed = data_feed(batch, batch.ids, objective);
  feed["labels"] = vector_of(objective.name == "causal-lm" ? next_tokens(batch)
                             : objective.name == "tokens"  ? batch.token_labels
                                                           : batch.labels);
  return feed;
}

// The mean loss of a batch without anything to predict would be 0/0, and so its gradient.
void check_predicts(const data::Batch& batch, const Feed& feed) {
  const auto labels = feed.at("labels").data<std::int32_t>();
  if (std::ranges::count(labels, kIgnoredLabel) < std::ssize(labels)) return;
  fail(
      "batch of {} from example {} on: no token to predict, expected longer texts or larger "
      "batches",
      batch.example_indices.size(), batch.example_indices.front() + 1);
}

}  // namespace

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> kNames{"causal-lm",   "classify",   "mlm",
                                               "multi-label", "regression", "tokens"};
  return kNames;
}

std::string task_of(const std::string& objective) {
  const std::vector<std::string>& names = objective_names();
  if (std::find(names.begin(), names.end(), objective) == names.end())
    throw unknown_name("objective", objective, names);
  return labels_of(objective) ? "classify" : objective;
}

std::string objective_for(const std::string& objective, LabelKind labels) {
  if (objective != "classify") return objective;
  return labels == LabelKind::Number ? "regression"
         : labels == LabelKind::Set  ? "multi-label"
                                     : "classify";
}

std::optional<LabelKind> labels_of(const std::string& objective) {
  if (objective == "regression") return LabelKind::Number;
  if (objective == "multi-label") return LabelKind::Set;
  return std::nullopt;
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
  if (objective.name != "mlm") {
    Feed feed = make_feed(batch, objective);
    if (objective.name == "causal-lm") check_predicts(batch, feed);
    return feed;
  }
  const MaskedBatch masked = mask_tokens(batch, objective.masking, epoch);
  Feed feed = data_feed(batch, masked.ids, objective);
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
  Feed feed = data_feed(batch, masked.ids, objective);
  feed["labels"] = vector_of(labels);
  return feed;
}

void set_step_inputs(Feed& feed, double learning_rate, std::uint64_t seed, std::int64_t step,
                     bool is_applied, std::int64_t changed_at) {
  feed["learning_rate"] = Tensor::from<float>({}, {static_cast<float>(learning_rate)});
  feed["apply"] = Tensor::from<float>({}, {is_applied ? 1.0f : 0.0f});
  const auto word = [](std::uint64_t bits) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  };
  const auto random = [&](std::int64_t count) {
    return Tensor::from<std::int32_t>(
        {3}, {word(seed), word(seed >> 32), word(static_cast<std::uint64_t>(count))});
  };
  feed["random"] = random(step);
  feed["late_random"] = random(step - changed_at);
}

}  // namespace lathe::train
