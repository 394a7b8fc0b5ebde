#include "lathe/experiment/predict.h"

#include <algorithm>

#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"
#include "lathe/train/text_source.h"

namespace lathe::experiment {
namespace {

constexpr std::int64_t kBatchTokens = 4096;

Prediction read_logits(std::span<const float> logits) {
  return {.label = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) -
                                            logits.begin()),
          .probabilities = train::softmax(logits),
          .logits = {logits.begin(), logits.end()}};
}

}  // namespace

Predictor::Predictor(const io::Model& model, const engine::ExecutionOptions& execution)
    : tokenizer_(train::load_tokenizer(model)),
      length_(train::max_length(model)),
      classifier_(model, {.execution = execution}) {}

std::vector<Prediction> Predictor::predict(std::span<const std::string> texts) {
  data::TokenizedDataset tokens;
  for (const std::string& text : texts) {
    tokenizer_->encode(text, tokens.ids, length_, data::Truncation::Head);
    tokens.offsets.push_back(static_cast<std::int64_t>(tokens.ids.size()));
    tokens.labels.push_back(0);  // not read: predictions have no labels yet
  }
  const data::BatchPlan plan =
      data::plan_batches(tokens.lengths(), {.max_examples = 0, .max_tokens = kBatchTokens});
  train::TokenizedTexts source(std::move(tokens), {});
  std::vector<Prediction> result;
  for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
    const Tensor logits = classifier_.logits(source.evaluation_batch(plan.examples(b)).feed);
    const auto labels = static_cast<std::size_t>(logits.dim(1));
    for (std::size_t row = 0; row < static_cast<std::size_t>(logits.dim(0)); ++row)
      result.push_back(read_logits(logits.data<float>().subspan(row * labels, labels)));
  }
  return result;
}

}  // namespace lathe::experiment
