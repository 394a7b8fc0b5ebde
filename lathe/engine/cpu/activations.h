#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lathe/core/attribute.h"
#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine {

/// An op that applies a function to each element, and what the CPU's kernels know about it. The one
/// list of them: steps, their gradients and what is fused into products read it.
struct Activation {
  std::string_view name;         ///< in `fused_linear {activation}`
  std::string_view op;           ///< the op, and the `function` of its map_gradient
  std::string_view approximate;  ///< what the attribute of that name must be; empty: there is none
  Unary function;
  bool is_in_epilogue;  ///< whether `gemm` can apply it before it stores
  bool has_backward;    ///< whether `unary_backward` has its derivative
};

std::span<const Activation> activations();

/// The activation that `op` with these attributes is; nullptr when the kernels have none.
const Activation* find_activation(std::string_view op, const AttributeReader& attributes);
/// The activation of that name among those `gemm` can apply; nullptr for others.
const Activation* find_epilogue(std::string_view name);

}  // namespace lathe::engine
