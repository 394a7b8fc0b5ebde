#include "lathe/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/philox.h"

namespace lathe::generate {
namespace {

// The candidates of top-k, the likeliest first; of equals the first.
std::vector<std::int32_t> likeliest(std::span<const float> logits, std::int64_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto is_before = [&](std::int32_t a, std::int32_t b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  if (count == 0 || count >= std::ssize(order)) {
    std::sort(order.begin(), order.end(), is_before);
    return order;
  }
  std::partial_sort(order.begin(), order.begin() + count, order.end(), is_before);
  order.resize(static_cast<std::size_t>(count));
  return order;
}

}  // namespace

void check_sampling(const Sampling& sampling) {
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature))
    fail("temperature is {}: expected 0 or more", sampling.temperature);
  if (sampling.top_k < 0) fail("top-k is {}: expected 0 or more", sampling.top_k);
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    fail("top-p is {}: expected above 0 and at most 1", sampling.top_p);
  if (sampling.temperature > 0) return;
  if (sampling.top_k > 0 || sampling.top_p < 1)
    fail("top-{} says nothing at temperature 0, where the likeliest token is taken",
         sampling.top_k > 0 ? "k" : "p");
}

std::int32_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          std::uint32_t prompt, std::uint32_t position) {
  check(!logits.empty(), "a vocabulary has tokens");
  bool has_nan = false;
  for (const float logit : logits) has_nan |= std::isnan(logit);
  if (has_nan) return kNoToken;
  if (sampling.temperature == 0)
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
  const std::vector<std::int32_t> candidates = likeliest(logits, sampling.top_k);
  const double highest = logits[static_cast<std::size_t>(candidates[0])];
  if (!std::isfinite(highest)) return kNoToken;  // no likelihood is a number then
  std::vector<double> weights;
  double total = 0;
  for (const std::int32_t id : candidates) {
    const double logit = logits[static_cast<std::size_t>(id)];
    weights.push_back(std::exp((logit - highest) / sampling.temperature));
    total += weights.back();
  }
  if (sampling.top_p < 1) {
    double covered = 0;
    std::size_t kept = 0;
    while (kept < weights.size() && covered < sampling.top_p * total) covered += weights[kept++];
    weights.resize(kept);
    total = covered;
  }
  const PhiloxCounter bits = philox({position, prompt, 0, 0}, sampling.seed);
  double left = unit_interval(bits[0]) * total;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return candidates[i];
  }
  return candidates[weights.size() - 1];
}

}  // namespace lathe::generate
