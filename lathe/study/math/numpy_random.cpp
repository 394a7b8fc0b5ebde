#include "lathe/study/math/numpy_random.h"

#include <algorithm>
#include <bit>

namespace lathe::study {

double NumpyRandom::next() {
  // 27 and 26 of two draws' bits make the 53 of a double.
  const std::uint64_t high = engine_() >> 5;
  const std::uint64_t low = engine_() >> 6;
  return static_cast<double>((high << 26) + low) / 9007199254740992.0;
}

std::uint64_t NumpyRandom::below(std::uint64_t bound) {
  if (bound <= 1) return 0;
  const std::uint64_t limit = bound - 1;
  const std::uint64_t mask = std::bit_ceil(limit + 1) - 1;
  const bool is_wide = limit > 0xFFFFFFFFu;
  for (;;) {
    std::uint64_t bits = engine_();
    if (is_wide) bits = bits << 32 | engine_();
    if ((bits & mask) <= limit) return bits & mask;
  }
}

std::vector<std::size_t> NumpyRandom::choice(std::span<const double> weights, std::size_t size) {
  std::vector<double> cumulative(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) cumulative[i] = sum += weights[i];
  for (double& value : cumulative) value /= sum;
  std::vector<std::size_t> result(size);
  for (std::size_t& index : result) {
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), next());
    index = static_cast<std::size_t>(found - cumulative.begin());
  }
  return result;
}

double numpy_sum(std::span<const double> values) {
  if (values.size() < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (values.size() > 128) {
    // The first half ends at a multiple of eight.
    std::size_t half = values.size() / 2;
    half -= half % 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  double part[8];
  std::copy_n(values.begin(), 8, part);
  std::size_t i = 8;
  for (; i + 8 <= values.size(); i += 8)
    for (std::size_t j = 0; j < 8; ++j) part[j] += values[i + j];
  double sum =
      ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  for (; i < values.size(); ++i) sum += values[i];
  return sum;
}

}  // namespace lathe::study
