#include "lathe/train/label_set_score.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"

namespace lathe::train {
namespace {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

LabelSetScore score_label_sets(const Answers& answers, std::span<const float> targets) {
  const auto width = static_cast<std::size_t>(answers.logits.dim(1));
  const auto rows = static_cast<std::size_t>(answers.logits.dim(0));
  check(rows * width == targets.size(), "a target for each logit");
  LabelSetScore result;
  result.labels.resize(width);
  std::vector<std::int64_t> right(width);
  std::int64_t num_exact = 0;
  const std::span<const float> logits = answers.logits.data<float>();
  for (std::size_t row = 0; row < rows; ++row) {
    bool is_exact = true;
    for (std::size_t label = 0; label < width; ++label) {
      const double x = logits[row * width + label], y = targets[row * width + label];
      const bool is_given = x > 0, is_true = y > 0.5;
      result.loss += std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - x * y;
      result.labels[label].predicted += is_given ? 1 : 0;
      result.labels[label].examples += is_true ? 1 : 0;
      right[label] += is_given && is_true ? 1 : 0;
      is_exact = is_exact && is_given == is_true;
    }
    num_exact += is_exact ? 1 : 0;
  }
  std::int64_t all_right = 0, all_named = 0;
  for (std::size_t label = 0; label < width; ++label) {
    ClassScore& score = result.labels[label];
    score.precision = share_of(right[label], score.predicted);
    score.recall = share_of(right[label], score.examples);
    score.f1 = share_of(2 * right[label], score.predicted + score.examples);
    all_right += right[label];
    all_named += score.predicted + score.examples;
  }
  result.micro_f1 = share_of(2 * all_right, all_named);
  result.macro_f1 = macro_f1(result.labels);
  result.exact = share_of(num_exact, static_cast<std::int64_t>(rows));
  result.loss /= static_cast<double>(std::max<std::size_t>(1, targets.size()));
  result.examples = static_cast<std::int64_t>(rows);
  result.tokens = answers.tokens;
  result.forward_seconds = answers.forward_seconds;
  return result;
}

}  // namespace lathe::train
