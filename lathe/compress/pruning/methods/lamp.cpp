#include <algorithm>
#include <numeric>

#include "lathe/compress/pruning/method.h"

// Magnitude against what else is left of the same weight: w^2 over the sum of all squares that are
// not smaller (Lee et al. 2021). Layers of other scales compare, and none goes as a whole before
// the others: its largest element has the score 1.
namespace lathe::compress::lamp {
namespace {

void score(std::span<float> values) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto square = [&](std::int64_t i) {
    const double value = values[static_cast<std::size_t>(i)];
    return value * value;
  };
  // The largest first; of equal ones the first counts as the larger.
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    return square(a) != square(b) ? square(a) > square(b) : a < b;
  });
  double sum = 0;
  std::vector<float> scores(values.size());
  for (const std::int64_t i : order) {
    sum += square(i);
    scores[static_cast<std::size_t>(i)] = sum > 0 ? static_cast<float>(square(i) / sum) : 0.0F;
  }
  std::ranges::copy(scores, values.begin());
}

State score(const ScoringInput& input) {
  State scores = input.values;
  for (auto& [state, tensor] : scores) score(tensor.mutable_data<float>());
  return scores;
}

const Register registration{PruningMethod{
    .name = "lamp",
    .summary = "the smallest magnitudes against what else is left of the weight",
    .scope = PruningScope::Global,
    .score = [](const ScoringInput& input) { return score(input); },
}};

}  // namespace
}  // namespace lathe::compress::lamp
