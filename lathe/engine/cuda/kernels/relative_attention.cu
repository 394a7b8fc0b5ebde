// Attention whose scores also tell how far a key is.
//
// A block has 32 queries of a sequence in one head, a warp four of them. Keys and values come in
// chunks of 32 by way of shared memory: a lane has a key for the scores, then features for the
// weighted values. What distances add to scores lies ready (arguments/attention.h), query by row
// and key by row, and is looked up.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = 8, kOfWarp = 4, kQueries = kWarps * kOfWarp, kKeys = kWarp;

// The rows of distances 1 - longest to longest - 1.
__global__ void distance_rows_kernel(const __grid_constant__ RelativeAttentionArgs args) {
  const std::int64_t count = 2 * args.longest - 1, middle = args.table_rows / 2;
  for (std::int64_t i = global_thread(); i < count; i += grid_stride()) {
    const std::int64_t distance = i - (args.longest - 1), far = distance < 0 ? -distance : distance;
    std::int64_t bucket = far;
    if (far > args.near) {
      int low = 0, high = args.num_starts;  // starts that are not beyond it
      while (low < high) {
        const int half = (low + high) / 2;
        if (args.starts[half] <= far)
          low = half + 1;
        else
          high = half;
      }
      bucket = args.near + low;
    }
    const std::int64_t row = distance < 0 ? middle - bucket : middle + bucket;
    args.rows[i] = static_cast<std::int32_t>(row < 0                 ? 0
                                             : row < args.table_rows ? row
                                                                     : args.table_rows - 1);
  }
}

struct QueryTile {
  std::int64_t sequence = 0, start = 0, length = 0, first = 0;
};
// Tile number `tile` of a launch. Packed sequences begin with tile start / kQueries + sequence, so
// that each has as many as it needs; some are empty.
__device__ QueryTile tile_of(const RelativeAttentionArgs& args, std::int64_t tile) {
  QueryTile result;
  if (args.offsets.data == nullptr) {
    const std::int64_t tiles = (args.length + kQueries - 1) / kQueries;
    result.sequence = tile / tiles;
    result.start = result.sequence * args.length;
    result.length = result.sequence < real_size(args.sequences) ? args.length : 0;
    result.first = tile % tiles * kQueries;
    return result;
  }
  const auto first_tile = [&](std::int64_t s) {
    return integer_at(args.offsets, s) / kQueries + s;
  };
  std::int64_t low = 0, high = real_size(args.sequences);
  while (high - low > 1) {
    const std::int64_t half = (low + high) / 2;
    if (first_tile(half) <= tile)
      low = half;
    else
      high = half;
  }
  if (real_size(args.sequences) == 0) return result;
  result.sequence = low;
  result.start = integer_at(args.offsets, low);
  result.length = integer_at(args.offsets, low + 1) - result.start;
  const bool is_inside = result.start >= 0 && result.length >= 0 &&
                         result.start + result.length <= real_size(args.queries);
  if (!is_inside) {
    if (threadIdx.x == 0) report(args.fault);
    result.length = 0;
  }
  result.first = (tile - first_tile(low)) * kQueries;
  return result;
}

template <int kParts>  // of 32 features
__global__ void __launch_bounds__(kWarps* kWarp)
    relative_attention_kernel(const __grid_constant__ RelativeAttentionArgs args) {
  constexpr int kRoom = kParts * kWarp;
  __shared__ float queries[kQueries][kRoom];
  // Each row of keys begins one further than the one before: lanes read a column of them.
  __shared__ float keys[kKeys][kRoom], values[kKeys][kRoom];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, head = blockIdx.y, d = args.d;
  const QueryTile tile = tile_of(args, blockIdx.x);
  if (tile.first >= tile.length) return;
  const std::int64_t width = std::int64_t{args.heads} * d, feature = std::int64_t{head} * d;
  const std::int64_t by_row = std::int64_t{args.heads} * args.table_rows;
  for (int i = threadIdx.x; i < kQueries * kRoom; i += blockDim.x) {
    const int row = i / kRoom, c = i % kRoom;
    const bool is_there = tile.first + row < tile.length && c < d;
    queries[row][c] =
        is_there ? args.q[(tile.start + tile.first + row) * width + feature + c] : 0.0f;
  }
  const auto is_kept = [&](std::int64_t key) {
    return args.mask.data == nullptr || integer_at(args.mask, tile.start + key) != 0;
  };
  // Where no key is kept, all are alike.
  bool keeps_any = args.mask.data == nullptr;
  for (std::int64_t key = threadIdx.x; key < tile.length && !keeps_any; key += blockDim.x)
    keeps_any = is_kept(key);
  keeps_any = __syncthreads_or(keeps_any) != 0;

  float tops[kOfWarp], totals[kOfWarp] = {}, sums[kOfWarp][kParts] = {};
  for (float& top : tops) top = -INFINITY;
  for (std::int64_t begin = 0; begin < tile.length; begin += kKeys) {
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * kRoom; i += blockDim.x) {
      const int row = i / kRoom, c = i % kRoom;
      const std::int64_t at = (tile.start + begin + row) * width + feature + c;
      const bool is_there = begin + row < tile.length && c < d;
      keys[row][(c + row) % kRoom] = is_there ? args.k[at] : 0.0f;
      values[row][c] = is_there ? args.v[at] : 0.0f;
    }
    __syncthreads();
    const std::int64_t key = begin + lane;
    float scores[kOfWarp] = {};
    for (int c = 0; c < d; ++c) {
      const float k = keys[lane][(c + lane) % kRoom];
#pragma unroll
      for (int i = 0; i < kOfWarp; ++i)
        scores[i] = fmaf(queries[warp * kOfWarp + i][c], k, scores[i]);
    }
#pragma unroll
    for (int i = 0; i < kOfWarp; ++i) {
      const std::int64_t query = tile.first + warp * kOfWarp + i;
      const bool is_there = key < tile.length && query < tile.length;
      if (is_there) {
        const std::int64_t row = args.rows[query - key + args.longest - 1];
        const std::int64_t place = head * args.table_rows + row;
        if (args.of_queries != nullptr)
          scores[i] += args.of_queries[(tile.start + query) * by_row + place];
        if (args.of_keys != nullptr) scores[i] += args.of_keys[(tile.start + key) * by_row + place];
      }
      float score = is_there && is_kept(key) ? scores[i] * args.scale : -INFINITY;
      if (!keeps_any) score = key < tile.length ? 0.0f : -INFINITY;
      const float higher = fmaxf(tops[i], join_warp(score, Larger{}));
      const bool is_nothing = higher == -INFINITY;  // no key yet that is kept
      const float shrink = is_nothing ? 0.0f : expf(tops[i] - higher);
      const float weight = is_nothing ? 0.0f : expf(score - higher);
      totals[i] = totals[i] * shrink + join_warp(weight, Add{});
      tops[i] = higher;
#pragma unroll
      for (float& sum : sums[i]) sum *= shrink;
      scores[i] = weight;
    }
    for (int j = 0; j < kKeys; ++j) {
#pragma unroll
      for (int i = 0; i < kOfWarp; ++i) {
        const float weight = __shfl_sync(kAllLanes, scores[i], j);
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          sums[i][part] = fmaf(weight, values[j][part * kWarp + lane], sums[i][part]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kOfWarp; ++i) {
    const std::int64_t query = tile.first + warp * kOfWarp + i;
    if (query >= tile.length) continue;
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      if (const int c = part * kWarp + lane; c < d)
        args.y[(tile.start + query) * width + feature + c] = sums[i][part] / totals[i];
  }
}

// Rows beyond the real ones.
__global__ void clear_rest_kernel(const __grid_constant__ RelativeAttentionArgs args) {
  const std::int64_t width = std::int64_t{args.heads} * args.d;
  const std::int64_t begin = real_size(args.queries) * width;
  for (std::int64_t i = begin + global_thread(); i < args.queries.capacity * width;
       i += grid_stride())
    args.y[i] = 0;
}

template <int kParts>
void attend(const RelativeAttentionArgs& args, dim3 grid, Stream* stream) {
  relative_attention_kernel<kParts><<<grid, kWarps * kWarp, 0, stream_of(stream)>>>(args);
}

}  // namespace

void relative_attention(const RelativeAttentionArgs& args, Stream* stream) {
  if (args.queries.capacity == 0) return;
  distance_rows_kernel<<<blocks_for(2 * args.longest, kThreads), kThreads, 0, stream_of(stream)>>>(
      args);
  if (args.queries.symbol != nullptr)
    clear_rest_kernel<<<64, kThreads, 0, stream_of(stream)>>>(args);
  const std::int64_t tiles =
      args.offsets.data == nullptr
          ? args.sequences.capacity * ((args.length + kQueries - 1) / kQueries)
          : args.queries.capacity / kQueries + args.sequences.capacity;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(args.heads));
  if (args.d <= 32)
    attend<1>(args, grid, stream);
  else if (args.d <= 64)
    attend<2>(args, grid, stream);
  else
    attend<4>(args, grid, stream);
}

}  // namespace lathe::engine::cuda
