#include "lathe/train/answers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/data/batching.h"
#include "lathe/data/match_labels.h"

namespace lathe::train {
namespace {

// For each of `names` where it stands among `own`; nothing where they are not the same labels.
std::optional<std::vector<std::size_t>> positions_of(const std::vector<std::string>& names,
                                                     const std::vector<std::string>& own) {
  if (own.size() != names.size()) return std::nullopt;
  data::Dataset labels{.examples = {}, .label_names = names};
  for (std::int32_t label = 0; label < labels.num_labels(); ++label)
    labels.examples.push_back({.text = {}, .label = label});
  try {
    labels = data::match_labels(std::move(labels), own);
  } catch (const UserError&) {
    return std::nullopt;
  }
  std::vector<std::size_t> positions;
  for (const std::int32_t label : labels.labels())
    positions.push_back(static_cast<std::size_t>(label));
  if (std::set<std::size_t>(positions.begin(), positions.end()).size() != own.size())
    return std::nullopt;
  return positions;
}

// log(sum of exp(terms)), with the largest taken out so that nothing overflows.
double log_of_sum(std::span<const double> terms) {
  const double most = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - most);
  return std::log(sum) + most;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  std::vector<double> result(logits.begin(), logits.end());
  const double total = log_of_sum(result);
  for (double& value : result) value -= total;
  return result;
}

}  // namespace

data::BatchPlan plan_answers(const Classifier& classifier, ExampleSource& source,
                             const EvaluationOptions& options) {
  // Sorting everything by length groups equal lengths: padded batches waste nothing, and packed
  // ones have equal work in each sequence.
  data::BatchOptions batching = options.batches(classifier.batch_tokens());
  batching.sort_window = source.size();
  const std::vector<std::int64_t> lengths = source.lengths();
  return data::plan_batches(lengths, batching);
}

Answers answer_all(Classifier& classifier, ExampleSource& source,
                   const EvaluationOptions& options) {
  const data::BatchPlan plan = plan_answers(classifier, source, options);
  Answers result;
  std::int64_t done = 0;
  for (std::int64_t index = 0; index < plan.num_batches(); ++index) {
    const ExampleBatch batch = source.evaluation_batch(plan.examples(index));
    const auto start = std::chrono::steady_clock::now();
    const Tensor logits = classifier.logits(batch.feed);
    result.forward_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::int64_t width = logits.dim(1);
    if (index == 0) result.logits = Tensor(DType::F32, {source.size(), width});
    const std::span<const float> values = logits.data<float>();
    const std::span<float> all = result.logits.mutable_data<float>();
    for (std::size_t row = 0; row < batch.examples.size(); ++row)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row) * width, width,
                  all.begin() + batch.examples[row] * width);
    done += static_cast<std::int64_t>(batch.examples.size());
    result.tokens += batch.tokens;
    if (options.progress && !options.progress(done, result.tokens)) throw Interrupted();
  }
  return result;
}

std::vector<double> softmax(std::span<const float> logits, double temperature) {
  double most = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) most = std::max(most, static_cast<double>(logit));
  std::vector<double> result;
  double sum = 0;
  for (const float logit : logits) {
    result.push_back(std::exp((static_cast<double>(logit) - most) / temperature));
    sum += result.back();
  }
  for (double& value : result) value /= sum;
  return result;
}

std::vector<std::size_t> match_columns(const std::vector<std::string>& own,
                                       const std::vector<std::string>& names) {
  const std::optional<std::vector<std::size_t>> positions = positions_of(names, own);
  if (!positions)
    fail("has the labels {}: expected {}", fmt::join(own, ", "), fmt::join(names, ", "));
  return *positions;
}

Tensor pick_columns(const Tensor& logits, std::span<const std::size_t> columns) {
  check(logits.dim(1) == static_cast<std::int64_t>(columns.size()), "a place for each column");
  Tensor result(DType::F32, logits.dims());
  const std::span<const float> from = logits.data<float>();
  const std::span<float> to = result.mutable_data<float>();
  for (std::size_t row = 0; row < from.size(); row += columns.size())
    for (std::size_t column = 0; column < columns.size(); ++column)
      to[row + column] = from[row + columns[column]];
  return result;
}

double mean_divergence(const Tensor& logits, const Tensor& other) {
  check(logits.dims() == other.dims(), "answers to the same examples");
  const auto width = static_cast<std::size_t>(logits.dim(1));
  const auto rows = static_cast<std::size_t>(logits.dim(0));
  double sum = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<double> p = log_softmax(logits.data<float>().subspan(row * width, width));
    const std::vector<double> q = log_softmax(other.data<float>().subspan(row * width, width));
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  }
  return rows == 0 ? 0 : std::max(0.0, sum / static_cast<double>(rows));
}

Tensor ensemble_logits(std::span<const Tensor> logits) {
  check(!logits.empty(), "somebody's logits");
  Tensor result(DType::F32, logits.front().dims());
  const std::span<float> values = result.mutable_data<float>();
  const auto width = static_cast<std::size_t>(result.dim(1));
  for (std::size_t row = 0; row < values.size(); row += width) {
    std::vector<std::vector<double>> members;
    for (const Tensor& member : logits)
      members.push_back(log_softmax(member.data<float>().subspan(row, width)));
    for (std::size_t i = 0; i < width; ++i) {
      std::vector<double> terms;
      for (const std::vector<double>& member : members) terms.push_back(member[i]);
      values[row + i] =
          static_cast<float>(log_of_sum(terms) - std::log(static_cast<double>(logits.size())));
    }
  }
  return result;
}

Tensor mean_probabilities(std::span<const Tensor> logits, double temperature) {
  check(!logits.empty(), "somebody's logits");
  Tensor result(DType::F32, logits.front().dims());
  const std::span<float> mean = result.mutable_data<float>();
  const auto width = static_cast<std::size_t>(result.dim(1));
  for (std::size_t row = 0; row < mean.size(); row += width) {
    std::vector<double> sum(width);
    for (const Tensor& member : logits) {
      check(member.dims() == result.dims(), "logits of one shape");
      const std::vector<double> probabilities =
          softmax(member.data<float>().subspan(row, width), temperature);
      for (std::size_t i = 0; i < width; ++i) sum[i] += probabilities[i];
    }
    for (std::size_t i = 0; i < width; ++i)
      mean[row + i] = static_cast<float>(sum[i] / static_cast<double>(logits.size()));
  }
  return result;
}

}  // namespace lathe::train
