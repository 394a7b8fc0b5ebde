#pragma once

#include <optional>
#include <string_view>

#include "lathe/core/attribute.h"
#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine {

/// A unary map as the kernels know it.
struct CudaMap {
  cuda::Map map = cuda::Map::Identity;
  float slope = 0;
};

/// The map that a unary op computes; nullopt for another op.
std::optional<CudaMap> find_cuda_map(std::string_view op, const AttributeReader& attributes);
/// The map that `fused_linear` calls by this name; nullopt where the kernels have none.
std::optional<cuda::Map> find_cuda_epilogue(std::string_view name);

}  // namespace lathe::engine
