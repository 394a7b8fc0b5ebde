#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lathe::data {

/// Random numbers that are a function of a key alone, the same on every machine (the standard
/// library's distributions are not): SplitMix64, a counter passed through a mixing function.
class CounterRandom {
 public:
  /// Streams of different keys are independent.
  explicit CounterRandom(std::uint64_t seed, std::uint64_t stream = 0, std::uint64_t index = 0)
      : state_(mix(mix(mix(seed + 1) + stream + 1) + index + 1)) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    return mix(state_);
  }
  /// A number below `limit`, each equally likely; `limit` is not 0.
  std::uint64_t below(std::uint64_t limit) {
    // The last, incomplete run of `limit` numbers would favour small results: draw again.
    const std::uint64_t usable = UINT64_MAX - (UINT64_MAX % limit + 1) % limit;
    std::uint64_t value = next();
    while (value > usable) value = next();
    return value % limit;
  }
  /// Puts the values into a random order.
  template <typename T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  static std::uint64_t mix(std::uint64_t value) {
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
  }
  std::uint64_t state_;
};

}  // namespace lathe::data
