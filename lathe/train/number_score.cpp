#include "lathe/train/number_score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/core/error.h"

namespace lathe::train {

std::optional<double> correlation(std::span<const double> a, std::span<const double> b) {
  check(a.size() == b.size(), "as many on both sides");
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  if (!(aa > 0) || !(bb > 0)) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i)
      result[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    begin = end;
  }
  return result;
}

NumberScore score_numbers(const Answers& answers, std::span<const float> numbers) {
  check(answers.logits.dim(0) == static_cast<std::int64_t>(numbers.size()) &&
            answers.logits.dim(1) == 1,
        "an answer for each number");
  const std::span<const float> given = answers.logits.data<float>();
  const std::vector<double> guesses(given.begin(), given.end());
  const std::vector<double> truths(numbers.begin(), numbers.end());
  NumberScore result;
  for (std::size_t i = 0; i < truths.size(); ++i)
    result.loss += (guesses[i] - truths[i]) * (guesses[i] - truths[i]);
  result.loss /= static_cast<double>(std::max<std::size_t>(1, truths.size()));
  result.pearson = correlation(guesses, truths);
  result.spearman = correlation(ranks(guesses), ranks(truths));
  result.examples = static_cast<std::int64_t>(truths.size());
  result.tokens = answers.tokens;
  result.forward_seconds = answers.forward_seconds;
  return result;
}

}  // namespace lathe::train
