#include "lathe/engine/cuda/cuda_walks.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {

CudaWalks join_axes(std::vector<std::int64_t> dims,
                    std::vector<std::vector<std::int64_t>> strides) {
  CudaWalks result{{}, std::vector<std::vector<std::int64_t>>(strides.size())};
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    bool joins = !result.dims.empty();
    for (std::size_t i = 0; joins && i < strides.size(); ++i)
      joins = result.strides[i].back() == strides[i][axis] * dims[axis];
    if (joins) {
      result.dims.back() *= dims[axis];
      for (std::size_t i = 0; i < strides.size(); ++i) result.strides[i].back() = strides[i][axis];
      continue;
    }
    result.dims.push_back(dims[axis]);
    for (std::size_t i = 0; i < strides.size(); ++i) result.strides[i].push_back(strides[i][axis]);
  }
  return result;
}

std::vector<std::int64_t> broadcast_walk(std::span<const std::int64_t> from,
                                         std::span<const std::int64_t> to) {
  const std::vector<std::int64_t> own = ops::row_major_strides(from);
  std::vector<std::int64_t> strides(to.size(), 0);
  const std::size_t added = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != 1) strides[added + axis] = own[axis];
  return strides;
}

void set_dims(const std::vector<std::int64_t>& from, std::int32_t& rank, std::int64_t* dims) {
  if (from.size() > cuda::kMostAxes)
    fail("device cuda walks along {} axes at most, not {}", cuda::kMostAxes, from.size());
  rank = static_cast<std::int32_t>(from.size());
  std::copy(from.begin(), from.end(), dims);
}

cuda::Walk to_walk(const std::vector<std::int64_t>& strides) {
  cuda::Walk walk;
  std::copy(strides.begin(), strides.end(), walk.strides);
  return walk;
}

}  // namespace lathe::engine
