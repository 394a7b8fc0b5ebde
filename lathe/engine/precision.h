#pragma once

#include <string_view>

namespace lathe::engine {

/// What the products of a run (linear, matmul, attention) see of their operands; everything else,
/// and every sum, is float.
///
/// Bf16 means what PyTorch's autocast means: operands and results of products are rounded to
/// bfloat16, while residuals, norms, softmax, losses, weight gradients, parameters and moments stay
/// float.
enum class Precision {
  Float32,
  Tf32,  ///< operands rounded to 10 bits after the leading one
  Bf16,  ///< operands and results rounded to bfloat16
};

/// The precision called `float32`, `tf32` or `bf16`; fails with these names.
Precision parse_precision(std::string_view name);
std::string_view name(Precision precision);

}  // namespace lathe::engine
