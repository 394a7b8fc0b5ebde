#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "lathe/study/math/uniform_source.h"

namespace lathe::study {

/// NumPy's legacy `RandomState`, number for number: Optuna draws from one, so its sequences can be
/// repeated from the same seed.
class NumpyRandom final : public UniformSource {
 public:
  explicit NumpyRandom(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  /// `rand()`: a number in [0, 1).
  double next() override;
  /// `uniform(low, high)`.
  double uniform(double low, double high) { return low + (high - low) * next(); }
  /// `randint(bound)`: a whole number from 0 to bound - 1.
  std::uint64_t below(std::uint64_t bound);
  /// `choice(len(weights), size, p=weights)`.
  std::vector<std::size_t> choice(std::span<const double> weights, std::size_t size);
  /// `shuffle` of a list.
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[below(i + 1)]);
  }

 private:
  std::mt19937 engine_;
};

/// NumPy's sum of an array: eight partial sums, halves of long ones. The last bit of a probability
/// decides which kernel a draw falls on, so it has to be the same.
double numpy_sum(std::span<const double> values);

}  // namespace lathe::study
