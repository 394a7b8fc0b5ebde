#include "lathe/train/word_score.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "lathe/core/interrupt.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {
namespace {

// Where each sequence's tokens begin and end among the rows of logits, packed or padded.
std::vector<std::pair<std::int64_t, std::int64_t>> token_ranges(const Feed& feed) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  if (const auto found = feed.find("offsets"); found != feed.end()) {
    const auto offsets = found->second.data<std::int32_t>();
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      ranges.emplace_back(offsets[i], offsets[i + 1]);
    return ranges;
  }
  const Tensor& labels = feed.at("labels");
  for (std::int64_t row = 0; row < labels.dim(0); ++row)
    ranges.emplace_back(row * labels.dim(1), (row + 1) * labels.dim(1));
  return ranges;
}

void count_entities(std::span<const std::string> expected, std::span<const std::string> predicted,
                    WordScore& score) {
  const std::vector<Entity> truth = find_entities(expected), found = find_entities(predicted);
  const auto add = [&](const Entity& entity, std::int64_t EntityCount::*count) {
    ++(score.entities.*count);
    ++(score.types[entity.type].*count);
  };
  const std::set<Entity> known(truth.begin(), truth.end());
  for (const Entity& entity : truth) add(entity, &EntityCount::expected);
  for (const Entity& entity : found) {
    add(entity, &EntityCount::predicted);
    if (known.contains(entity)) add(entity, &EntityCount::right);
  }
}

}  // namespace

WordScore evaluate_words(Classifier& classifier, ExampleSource& source,
                         const std::vector<std::string>& label_names,
                         const EvaluationOptions& options) {
  const data::BatchPlan plan = plan_answers(classifier, source, options);
  const auto width = label_names.size();
  WordScore score;
  score.has_entities = spell_entities(label_names);
  std::int64_t right = 0;
  double loss = 0;
  std::vector<std::string> expected, predicted;
  for (std::int64_t index = 0; index < plan.num_batches(); ++index) {
    const ExampleBatch batch = source.evaluation_batch(plan.examples(index));
    const auto start = std::chrono::steady_clock::now();
    const Tensor logits = classifier.logits(batch.feed);
    score.forward_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::span<const float> values = logits.data<float>();
    const std::span<const std::int32_t> labels = batch.feed.at("labels").data<std::int32_t>();
    for (const auto& [begin, end] : token_ranges(batch.feed)) {
      expected.clear();
      predicted.clear();
      for (auto token = static_cast<std::size_t>(begin); token < static_cast<std::size_t>(end);
           ++token) {
        if (labels[token] == kIgnoredLabel) continue;
        const auto label = static_cast<std::size_t>(labels[token]);
        if (labels[token] < 0 || label >= width)
          fail("a word has label {}, but the model knows 0 to {}", labels[token], width - 1);
        const std::span<const float> row = values.subspan(token * width, width);
        const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
        right += best == label ? 1 : 0;
        loss += cross_entropy(row, label);
        expected.push_back(label_names[label]);
        predicted.push_back(label_names[best]);
      }
      score.words += std::ssize(expected);
      if (score.has_entities) count_entities(expected, predicted, score);
    }
    score.examples += std::ssize(batch.examples);
    score.tokens += batch.tokens;
    if (options.progress && !options.progress(score.examples, score.tokens)) throw Interrupted();
  }
  const Interval interval = wilson_interval(right, score.words);
  score.accuracy_low = interval.low;
  score.accuracy_high = interval.high;
  const double words = std::max<double>(1, static_cast<double>(score.words));
  score.accuracy = static_cast<double>(right) / words;
  score.loss = loss / words;
  return score;
}

}  // namespace lathe::train
