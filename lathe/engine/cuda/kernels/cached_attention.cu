// Attention to caches of keys and values, which new tokens are put into first.
//
// A block is one query of one head, and its warps take turns at keys. Where four features a lane
// make whole parts of a warp, each part has a key, and loads of the next ones are under way; in
// heads of other sizes a lane has a key, then features. What warps hold, a largest score, a sum and
// a sum of values, is joined at the end in their order, so that the bits do not depend on who was
// first.

#include "lathe/engine/cuda/kernels/cached_attention.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kCacheWarps = 4;
constexpr int kLaneFeatures = kMostWideHeadSize / kWarp;

// The sequence that a token belongs to.
__device__ std::int64_t sequence_of(const CachedAttentionArgs& args, std::int64_t token) {
  std::int64_t low = 0, high = real_size(args.sequences);
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    if (integer_at(args.offsets, middle) <= token)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Where a token's key belongs: its sequence, that one's first row, and how many keys it sees.
struct CachePlace {
  std::int64_t sequence = 0, start = 0, keys = 0;
  bool is_inside = false;
};
__device__ CachePlace place_of_token(const CachedAttentionArgs& args, std::int64_t token) {
  const std::int64_t s = sequence_of(args, token);
  CachePlace place;
  place.sequence = s;
  place.start = integer_at(args.starts, s);
  const std::int64_t length = integer_at(args.lengths, s);
  place.keys = length + token - integer_at(args.offsets, s) + 1;
  place.is_inside = place.start >= 0 && length >= 0 && place.start + place.keys <= args.rows;
  return place;
}

// Whether a later sequence puts a token into the row, too: the last one's stays, as if they were
// written one after another. All threads of the block ask.
__device__ bool is_overwritten(const CachedAttentionArgs& args, std::int64_t sequence,
                               std::int64_t row) {
  bool is_there = false;
  for (std::int64_t s = sequence + 1 + threadIdx.x; s < real_size(args.sequences);
       s += blockDim.x) {
    const std::int64_t first = integer_at(args.starts, s) + integer_at(args.lengths, s);
    const std::int64_t count = integer_at(args.offsets, s + 1) - integer_at(args.offsets, s);
    is_there = is_there || (row >= first && row < first + count);
  }
  return __syncthreads_or(is_there) != 0;
}

// Puts a token's keys or values into a row, by all threads of the block.
template <CacheKind kKind>
__device__ void put_token(const CachedAttentionArgs& args, const float* from, std::byte* row) {
  if constexpr (kKind == CacheKind::Int8) {
    const int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int head = threadIdx.x / kWarp; head < args.kv_heads; head += warps) {
      float most = 0;
      bool has_nan = false;
      for (int i = lane; i < args.d; i += kWarp) {
        const float x = from[head * args.d + i];
        most = fmaxf(most, finite_magnitude(x));
        has_nan = has_nan || x != x;
      }
      const float scale =
          int8_scale(join_warp(most, Larger{}), __any_sync(kAllLanes, has_nan) != 0);
      for (int i = lane; i < args.d; i += kWarp)
        reinterpret_cast<signed char*>(row)[head * args.d + i] =
            static_cast<signed char>(int8_number(from[head * args.d + i], scale));
      if (lane == 0) scales_of_row(args, row)[head] = scale;
    }
  } else {
    for (int i = threadIdx.x; i < args.kv_heads * args.d; i += blockDim.x) {
      if constexpr (kKind == CacheKind::Bf16)
        reinterpret_cast<std::uint16_t*>(row)[i] = static_cast<std::uint16_t>(near_bf16(from[i]));
      else
        reinterpret_cast<float*>(row)[i] = from[i];
    }
  }
}

template <CacheKind kKind>
__global__ void append_kernel(CachedAttentionArgs args) {
  const std::int64_t width = std::int64_t{args.kv_heads} * args.d;
  for (std::int64_t token = blockIdx.x; token < real_size(args.tokens); token += gridDim.x) {
    const CachePlace place = place_of_token(args, token);
    if (!place.is_inside) {
      if (threadIdx.x == 0) report(args.fault);
      continue;
    }
    const std::int64_t row = place.start + place.keys - 1;
    if (is_overwritten(args, place.sequence, row)) continue;
    put_token<kKind>(args, args.k + token * width, args.new_k + row * args.row_bytes);
    put_token<kKind>(args, args.v + token * width, args.new_v + row * args.row_bytes);
  }
}

template <CacheKind kKind>
__global__ void __launch_bounds__(kCacheWarps* kWarp) attend_kernel(CachedAttentionArgs args) {
  __shared__ float query[kMostWideHeadSize];
  __shared__ float tops[kCacheWarps], totals[kCacheWarps], values[kCacheWarps][kMostWideHeadSize];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t real = real_size(args.tokens);
  const std::int64_t all = args.tokens.capacity * args.heads;
  for (std::int64_t item = blockIdx.x; item < all; item += gridDim.x) {
    const std::int64_t token = item / args.heads;
    const int head = static_cast<int>(item - token * args.heads);
    float* const y = args.y + item * args.d;
    CachePlace place;
    if (token < real) place = place_of_token(args, token);
    if (!place.is_inside) {
      for (int i = threadIdx.x; i < args.d; i += blockDim.x) y[i] = 0;
      continue;
    }
    for (int i = threadIdx.x; i < args.d; i += blockDim.x)
      query[i] = args.q[item * args.d + i] * args.scale;
    __syncthreads();
    const int kv_head = head / (args.heads / args.kv_heads);
    const std::int64_t first = kv_head * args.d;
    float top = -INFINITY, total = 0, sums[kLaneFeatures] = {};
    for (std::int64_t begin = warp * kWarp; begin < place.keys; begin += kCacheWarps * kWarp) {
      const std::int64_t key = begin + lane;
      float score = -INFINITY;
      if (key < place.keys) {
        const std::byte* const k = args.new_k + (place.start + key) * args.row_bytes;
        score = 0;
        for (int i = 0; i < args.d; ++i)
          score = fmaf(query[i], cached_number<kKind>(k, first + i), score);
        score *= cached_worth<kKind>(args, k, kv_head);
      }
      const float higher = fmaxf(top, join_warp(score, Larger{}));
      const float shrink = expf(top - higher);  // 0 at first
      const float weight = expf(score - higher);
      total = total * shrink + join_warp(weight, Add{});
      top = higher;
      for (float& sum : sums) sum *= shrink;
      const int count = static_cast<int>(place.keys - begin < kWarp ? place.keys - begin : kWarp);
      for (int j = 0; j < count; ++j) {
        const std::byte* const v = args.new_v + (place.start + begin + j) * args.row_bytes;
        const float share =
            __shfl_sync(kAllLanes, weight, j) * cached_worth<kKind>(args, v, kv_head);
        for (int part = 0; part < kLaneFeatures; ++part)
          if (const int i = part * kWarp + lane; i < args.d)
            sums[part] = fmaf(share, cached_number<kKind>(v, first + i), sums[part]);
      }
    }
    if (lane == 0) {
      tops[warp] = top;
      totals[warp] = total;
    }
    for (int part = 0; part < kLaneFeatures; ++part)
      if (const int i = part * kWarp + lane; i < args.d) values[warp][i] = sums[part];
    __syncthreads();
    float highest = tops[0];
    for (int w = 1; w < kCacheWarps; ++w) highest = fmaxf(highest, tops[w]);
    float all_weights = 0;
    for (int w = 0; w < kCacheWarps; ++w) all_weights += totals[w] * expf(tops[w] - highest);
    for (int i = threadIdx.x; i < args.d; i += blockDim.x) {
      float sum = 0;
      for (int w = 0; w < kCacheWarps; ++w) sum += values[w][i] * expf(tops[w] - highest);
      y[i] = sum / all_weights;
    }
    __syncthreads();
  }
}

constexpr int kRowWarps = 8, kTurns = 8;

// Heads of 4 kLanes features: a part of so many lanes has a key, kTurns of them at a time.
template <CacheKind kKind, int kLanes>
__global__ void __launch_bounds__(kRowWarps* kWarp) attend_parts_kernel(CachedAttentionArgs args) {
  constexpr int kKeys = kWarp / kLanes, kStep = kKeys * kTurns, kFeatures = 4 * kLanes;
  __shared__ float tops[kRowWarps], totals[kRowWarps];
  __shared__ float4 values[kRowWarps][kLanes];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int part = lane / kLanes, place = lane % kLanes;
  const std::int64_t real = real_size(args.tokens);
  const std::int64_t all = args.tokens.capacity * args.heads;
  for (std::int64_t item = blockIdx.x; item < all; item += gridDim.x) {
    const std::int64_t token = item / args.heads;
    const int head = static_cast<int>(item - token * args.heads);
    float4* const y = reinterpret_cast<float4*>(args.y + item * kFeatures);
    CachePlace found;
    if (token < real) found = place_of_token(args, token);
    if (!found.is_inside) {
      if (threadIdx.x < kLanes) y[threadIdx.x] = {0, 0, 0, 0};
      continue;
    }
    const float4 query =
        times(reinterpret_cast<const float4*>(args.q + item * kFeatures)[place], args.scale);
    const int kv_head = head / (args.heads / args.kv_heads);
    KeysSeen<kLanes> seen;
    for (std::int64_t begin = warp * kStep; begin < found.keys; begin += kRowWarps * kStep) {
      float4 keys[kTurns], rows[kTurns];
      const std::int64_t own = begin + part;
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::int64_t key = own + turn * kKeys, at = (found.start + key) * args.row_bytes;
        const bool is_there = key < found.keys;
        keys[turn] = rows[turn] = {0, 0, 0, 0};
        if (is_there) keys[turn] = cached_four<kKind>(args, args.new_k + at, kv_head, 4 * place);
        if (is_there) rows[turn] = cached_four<kKind>(args, args.new_v + at, kv_head, 4 * place);
      }
      seen.add(query, keys, rows, own, found.keys);
    }
    seen.put(tops, totals, values, warp, lane);
    __syncthreads();
    if (threadIdx.x < kLanes)
      y[threadIdx.x] = joined<kRowWarps>(tops, totals, values, static_cast<int>(threadIdx.x));
    __syncthreads();
  }
}

template <CacheKind kKind, int kLanes>
void attend_parts(const CachedAttentionArgs& args, Stream* stream) {
  attend_parts_kernel<kKind, kLanes><<<blocks_for(args.tokens.capacity * args.heads, 1, 1 << 16),
                                       kRowWarps * kWarp, 0, stream_of(stream)>>>(args);
}

template <CacheKind kKind>
void append_and_attend(const CachedAttentionArgs& args, Stream* stream) {
  append_kernel<kKind>
      <<<blocks_for(args.tokens.capacity, 1), kThreads, 0, stream_of(stream)>>>(args);
  if (args.d == 32) return attend_parts<kKind, 8>(args, stream);
  if (args.d == 64) return attend_parts<kKind, 16>(args, stream);
  if (args.d == 128) return attend_parts<kKind, 32>(args, stream);
  attend_kernel<kKind><<<blocks_for(args.tokens.capacity * args.heads, 1, 1 << 16),
                         kCacheWarps * kWarp, 0, stream_of(stream)>>>(args);
}

void copy_cache(const CachedAttentionArgs& args, const std::byte* from, std::byte* to,
                Stream* stream) {
  if (to != from)
    cudaMemcpyAsync(to, from, static_cast<std::size_t>(args.rows * args.row_bytes),
                    cudaMemcpyDeviceToDevice, stream_of(stream));
}

}  // namespace

void cached_attention(const CachedAttentionArgs& args, Stream* stream) {
  if (args.tokens.capacity == 0) return;
  if (is_single_token(args)) return attend_token(args, stream);
  copy_cache(args, args.k_cache, args.new_k, stream);
  copy_cache(args, args.v_cache, args.new_v, stream);
  by_cache_kind(args.kind, [&](auto kind) { append_and_attend<kind()>(args, stream); });
}

}  // namespace lathe::engine::cuda
