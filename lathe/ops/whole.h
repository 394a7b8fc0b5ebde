#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "lathe/core/tensor.h"
#include "lathe/ops/elements.h"

/// How reference kernels compute with whole numbers: in 64 bits, exactly, of which the result keeps
/// as many as its dtype has. A double would lose what is beyond 2^53, and could not wrap around.
namespace lathe::ops {

/// A whole number whose sums and products wrap around, as those of integer tensors do.
struct Whole {
  std::int64_t value = 0;

  friend Whole operator+(Whole a, Whole b) { return from_bits(a.bits() + b.bits()); }
  friend Whole operator-(Whole a, Whole b) { return from_bits(a.bits() - b.bits()); }
  friend Whole operator*(Whole a, Whole b) { return from_bits(a.bits() * b.bits()); }
  friend auto operator<=>(Whole a, Whole b) = default;

  std::uint64_t bits() const { return static_cast<std::uint64_t>(value); }
  static Whole from_bits(std::uint64_t bits) { return {static_cast<std::int64_t>(bits)}; }
};

/// Every element in row-major order, as a double or, of an integer tensor, as a whole number.
template <typename Number>
std::vector<Number> read_numbers(const Tensor& tensor);
template <>
inline std::vector<double> read_numbers<double>(const Tensor& tensor) {
  return read_elements(tensor);
}
template <>
std::vector<Whole> read_numbers<Whole>(const Tensor& tensor);

/// Stores the numbers in row-major order: doubles are rounded once, whole numbers lose the bits
/// that the dtype has not.
inline void write_numbers(Tensor& tensor, std::span<const double> values) {
  write_elements(tensor, values);
}
void write_numbers(Tensor& tensor, std::span<const Whole> values);

/// Calls the function with a number of the kind that tensors of this dtype are computed in.
template <typename Function>
void with_numbers_of(DType dtype, Function&& function) {
  if (is_floating(dtype))
    function(0.0);
  else
    function(Whole{});
}

}  // namespace lathe::ops
