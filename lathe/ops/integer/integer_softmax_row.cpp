#include "lathe/ops/integer/integer_softmax_row.h"

#include <algorithm>

#include "lathe/numerics/integer/exponential.h"

namespace lathe::ops {

std::vector<AttributeSpec> with_exponent_scale(std::vector<AttributeSpec> own) {
  own.push_back({.name = "exponent_multiplier",
                 .default_value = std::int64_t{1},
                 .summary = "this over 2^exponent_shift is 64 log2(e) times the scale of scores",
                 .required = true});
  own.push_back({.name = "exponent_shift",
                 .default_value = std::int64_t{1},
                 .summary = "at least 1",
                 .required = true});
  return own;
}

ExponentScale exponent_scale(const AttributeReader& attributes) {
  const std::int64_t multiplier = attributes.integer("exponent_multiplier");
  const std::int64_t shift = attributes.integer("exponent_shift");
  if (multiplier < 0 || multiplier > INT32_MAX)
    fail("exponent_multiplier {} must be 0 to {}", multiplier, INT32_MAX);
  if (shift < 1 || shift > 62) fail("exponent_shift {} must be 1 to 62", shift);
  return {multiplier, static_cast<int>(shift)};
}

std::int64_t exponential_row(std::span<std::int64_t> scores, std::span<const std::uint8_t> keep,
                             const ExponentScale& scale) {
  const auto is_kept = [&](std::size_t j) { return keep.empty() || keep[j] != 0; };
  std::int64_t highest = INT64_MIN;
  for (std::size_t j = 0; j < scores.size(); ++j)
    if (is_kept(j)) highest = std::max(highest, scores[j]);
  std::int64_t sum = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (highest == INT64_MIN)
      scores[j] = numerics::kExponentialOne;
    else if (!is_kept(j))
      scores[j] = 0;
    else
      scores[j] = numerics::exponential(
          numerics::exponential_steps(highest - scores[j], scale.multiplier, scale.shift));
    sum += scores[j];
  }
  return sum;
}

}  // namespace lathe::ops
