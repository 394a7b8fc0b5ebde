#include "lathe/experiment/predict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/train/answers.h"
#include "lathe/train/make_source.h"
#include "lathe/train/text_source.h"

namespace lathe::experiment {
namespace {

constexpr std::int64_t kBatchTokens = 4096;

// A graph that tells the texts of a pair apart was trained on pairs.
bool has_token_types(const io::Model& model) {
  const std::optional<NodeId> types = model.graph.find(train::kTokenTypes);
  return types && model.graph.is(*types, "input");
}

}  // namespace

AnswerKind answer_kind(const io::Model& model) {
  return {model.labels, model.label_names, model.reading.label_separator};
}

Prediction read_logits(std::span<const float> logits, LabelKind labels) {
  Prediction result{.label = 0, .probabilities = {}, .logits = {logits.begin(), logits.end()}};
  if (labels == LabelKind::Class) {
    result.label =
        static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    result.probabilities = train::softmax(logits);
  }
  if (labels == LabelKind::Set)
    for (const float logit : logits)
      result.probabilities.push_back(1 / (1 + std::exp(-static_cast<double>(logit))));
  return result;
}

std::vector<std::size_t> Prediction::likeliest(std::size_t count) const {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return probabilities[i]; });
  order.resize(std::min(count, order.size()));
  return order;
}

std::vector<std::size_t> Prediction::chosen() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > 0) result.push_back(i);
  return result;
}

Predictor::Predictor(const io::Model& model, const engine::ExecutionOptions& execution,
                     const PredictorOptions& options)
    : answers_(answer_kind(model)),
      reading_(model.reading),
      reads_pairs_(has_token_types(model) || model.reading.text_columns.size() == 2),
      tokenizer_(train::load_tokenizer(model)),
      length_(train::text_length(model, options.length)),
      truncation_(options.truncation.value_or(model.reading.truncation)),
      classifier_(reads_pairs_ ? train::with_token_types(model) : model, {.execution = execution}) {
}

std::vector<Prediction> Predictor::predict(std::span<const std::string> texts) {
  data::Dataset examples;
  for (const std::string& text : texts) examples.examples.push_back({text, data::kNoLabel});
  return predict(examples);
}

std::vector<Prediction> Predictor::predict(const data::Dataset& examples) {
  data::TokenizedDataset tokens;
  for (std::size_t i = 0; i < examples.examples.size(); ++i) {
    const std::int32_t first =
        data::encode_example(examples, i, *tokenizer_, {tokens.ids}, length_, truncation_);
    if (examples.has_pairs) tokens.first_lengths.push_back(first);
    tokens.offsets.push_back(static_cast<std::int64_t>(tokens.ids.size()));
    tokens.labels.push_back(0);  // not read: predictions have no labels yet
  }
  const data::BatchPlan plan =
      data::plan_batches(tokens.lengths(), {.max_examples = 0, .max_tokens = kBatchTokens});
  train::TokenizedTexts source(std::move(tokens),
                               {.objective = {.masking = {}, .has_token_types = reads_pairs_}});
  std::vector<Prediction> result;
  for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
    const Tensor logits = classifier_.logits(source.evaluation_batch(plan.examples(b)).feed);
    const auto width = static_cast<std::size_t>(logits.dim(1));
    for (std::size_t row = 0; row < static_cast<std::size_t>(logits.dim(0)); ++row)
      result.push_back(
          read_logits(logits.data<float>().subspan(row * width, width), answers_.labels));
  }
  return result;
}

}  // namespace lathe::experiment
