#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine {

/// A shape and how operands walk along it, with neighbouring axes joined where every walk can go
/// through both as through one: most broadcasts are then of one or two axes.
struct CudaWalks {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides;  ///< of each operand
};
CudaWalks join_axes(std::vector<std::int64_t> dims, std::vector<std::vector<std::int64_t>> strides);

/// The strides of `from` when it is broadcast to `to`, which has at least its rank.
std::vector<std::int64_t> broadcast_walk(std::span<const std::int64_t> from,
                                         std::span<const std::int64_t> to);

/// Fails where there are more axes than a kernel holds.
void set_dims(const std::vector<std::int64_t>& from, std::int32_t& rank, std::int64_t* dims);
cuda::Walk to_walk(const std::vector<std::int64_t>& strides);

}  // namespace lathe::engine
