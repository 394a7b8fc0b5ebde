#pragma once

// For the tests of products of floats: a weight packed for a dense kernel, a plain call of it, and
// what a sum of products is exactly.

#include <cmath>
#include <limits>
#include <vector>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {

/// A Linear weight [n, k], packed.
inline std::vector<float> packed_weight(const Kernels& kernels, const Matrix& weight) {
  std::vector<float> packed(
      static_cast<std::size_t>(kernels.packed_size(weight.rows(), weight.columns())),
      std::numeric_limits<float>::quiet_NaN());
  kernels.pack_b(weight.data(), weight.rows(), weight.columns(), weight.stride(), 1, packed.data());
  return packed;
}

/// Arguments for y = x . weight^T and nothing else, of a kernel of dense products or of another
/// that calls its operands alike.
template <typename Args = GemmArgs>
Args plain_product(const Matrix& x, const std::vector<float>& packed, Matrix& y) {
  Args args{};
  args.rows = x.rows();
  args.n = y.columns();
  args.k = x.columns();
  args.x = x.data();
  args.x_stride = x.stride();
  args.packed = packed.data();
  args.activation = Unary::None;
  args.y = y.data();
  args.y_stride = y.stride();
  return args;
}

struct ExactSum {
  double value = 0;
  double magnitude = 0;  ///< the sum of the absolute values of the terms
};

/// Row r of x times row j of the weight.
inline ExactSum exact_dot(const Matrix& x, std::int64_t r, const Matrix& weight, std::int64_t j) {
  ExactSum dot;
  for (std::int64_t p = 0; p < x.columns(); ++p) {
    const double term = static_cast<double>(x(r, p)) * static_cast<double>(weight(j, p));
    dot.value += term;
    dot.magnitude += std::abs(term);
  }
  return dot;
}

}  // namespace lathe::engine
