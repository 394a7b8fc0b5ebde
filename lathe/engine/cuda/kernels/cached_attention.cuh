#pragma once

// What attention to caches shares: what a cache holds, four features a lane, a head the lanes of a
// part of a warp.

#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {

/// One token of one sequence (is_single_token).
void attend_token(const CachedAttentionArgs& args, Stream* stream);

/// Calls run with a constant of the kind that the caches are of.
template <typename Run>
void by_cache_kind(CacheKind kind, Run run) {
  if (kind == CacheKind::Bf16)
    run(std::integral_constant<CacheKind, CacheKind::Bf16>{});
  else if (kind == CacheKind::Int8)
    run(std::integral_constant<CacheKind, CacheKind::Int8>{});
  else
    run(std::integral_constant<CacheKind, CacheKind::Float>{});
}

/// The scales of a row's heads, where a row has them.
__device__ inline float* scales_of_row(const CachedAttentionArgs& args, std::byte* row) {
  return reinterpret_cast<float*>(row + args.first_scale);
}

/// What the numbers of a row's head are worth.
template <CacheKind kKind>
__device__ float cached_worth(const CachedAttentionArgs& args, const std::byte* row, int kv_head) {
  if constexpr (kKind == CacheKind::Int8)
    return __ldcg(reinterpret_cast<const float*>(row + args.first_scale) + kv_head);
  return 1.0f;
}

/// A number of a row.
template <CacheKind kKind>
__device__ float cached_number(const std::byte* row, std::int64_t at) {
  if constexpr (kKind == CacheKind::Bf16)
    return __uint_as_float(unsigned{reinterpret_cast<const std::uint16_t*>(row)[at]} << 16);
  else if constexpr (kKind == CacheKind::Int8)
    return static_cast<float>(reinterpret_cast<const signed char*>(row)[at]);
  else
    return reinterpret_cast<const float*>(row)[at];
}

/// Four features of a row's head, from a multiple of four on.
template <CacheKind kKind>
__device__ float4 cached_four(const CachedAttentionArgs& args, const std::byte* row, int kv_head,
                              int feature) {
  const int four = (kv_head * args.d + feature) / 4;
  if constexpr (kKind == CacheKind::Bf16) {
    const uint2 bits = __ldcg(reinterpret_cast<const uint2*>(row) + four);
    return {__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
            __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u)};
  } else if constexpr (kKind == CacheKind::Int8) {
    const int bits = __ldcg(reinterpret_cast<const int*>(row) + four);
    const float worth = cached_worth<kKind>(args, row, kv_head);
    const auto number = [&](int place) {
      return worth * static_cast<float>(static_cast<signed char>(bits >> 8 * place));
    };
    return {number(0), number(1), number(2), number(3)};
  } else {
    return __ldcg(reinterpret_cast<const float4*>(row) + four);
  }
}

/// The bits of the bfloat16 number nearest to x, ties to even; NaN stays NaN.
__device__ inline unsigned near_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  return x != x ? (bits >> 16 | 0x40u) : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/// What a head's largest finite magnitude makes the scale of its numbers, and a number: as
/// `int:8,dynamic` has them.
__device__ inline float int8_scale(float most, bool has_nan) {
  constexpr float kHighest = 127, kSmallestScale = 0x1p-126f;
  return has_nan ? __uint_as_float(0x7fc00000u) : fmaxf(__fdiv_rn(most, kHighest), kSmallestScale);
}
__device__ inline int int8_number(float x, float scale) {
  return static_cast<int>(rintf(fminf(fmaxf(__fdiv_rn(x, scale), -127.0f), 127.0f)));
}
__device__ inline float finite_magnitude(float x) {
  return fabsf(x) < INFINITY ? fabsf(x) : 0.0f;
}

__device__ inline float4 times(float4 a, float by) {
  return {a.x * by, a.y * by, a.z * by, a.w * by};
}
__device__ inline float4 plus_times(float4 sum, float4 a, float by) {
  return {fmaf(a.x, by, sum.x), fmaf(a.y, by, sum.y), fmaf(a.z, by, sum.z), fmaf(a.w, by, sum.w)};
}
__device__ inline float dot(float4 a, float4 b) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, a.x * b.x)));
}

/// The sums over the parts of a warp, of kLanes lanes each, in all of them.
template <int kLanes>
__device__ void join_parts(float& total, float4& sum) {
#pragma unroll
  for (int distance = kWarp / 2; distance >= kLanes; distance /= 2) {
    total += __shfl_xor_sync(kAllLanes, total, distance);
    sum.x += __shfl_xor_sync(kAllLanes, sum.x, distance);
    sum.y += __shfl_xor_sync(kAllLanes, sum.y, distance);
    sum.z += __shfl_xor_sync(kAllLanes, sum.z, distance);
    sum.w += __shfl_xor_sync(kAllLanes, sum.w, distance);
  }
}

/// What a warp has found of the keys it took, one at a time for each part of kLanes lanes: the
/// largest score, and each part's own sums of weights and of weighted values.
template <int kLanes>
struct KeysSeen {
  static constexpr int kKeys = kWarp / kLanes;
  float top = -INFINITY, total = 0;
  float4 sum = {0, 0, 0, 0};

  /// Adds some keys and their values: a part's are `first` and those kKeys apart behind it; from
  /// `end` on they do not count.
  template <int kTurns>
  __device__ void add(float4 query, const float4 (&keys)[kTurns], const float4 (&values)[kTurns],
                      std::int64_t first, std::int64_t end) {
    float scores[kTurns];
    float higher = top;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      float score = dot(query, keys[turn]);
#pragma unroll
      for (int distance = kLanes / 2; distance > 0; distance /= 2)
        score += __shfl_xor_sync(kAllLanes, score, distance);
      scores[turn] = first + turn * kKeys < end ? score : -INFINITY;
      higher = fmaxf(higher, scores[turn]);
    }
#pragma unroll
    for (int distance = kWarp / 2; distance >= kLanes; distance /= 2)
      higher = fmaxf(higher, __shfl_xor_sync(kAllLanes, higher, distance));
    const float shrink = expf(top - higher);  // 0 at first
    total *= shrink;
    sum = times(sum, shrink);
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const float weight = expf(scores[turn] - higher);
      total += weight;
      sum = plus_times(sum, values[turn], weight);
    }
    top = higher;
  }

  /// Joins the parts and puts what is a warp's where `joined` reads it.
  template <int kWarps>
  __device__ void put(float (&tops)[kWarps], float (&totals)[kWarps],
                      float4 (&values)[kWarps][kLanes], int warp, int lane) {
    join_parts<kLanes>(total, sum);
    if (lane == 0) {
      tops[warp] = top;
      totals[warp] = total;
    }
    if (lane < kLanes) values[warp][lane] = sum;
  }
};

/// Four features of what the warps have found together: the largest score of each, and its sums of
/// weights and of weighted values.
template <int kWarps, int kLanes>
__device__ float4 joined(const float (&tops)[kWarps], const float (&totals)[kWarps],
                         const float4 (&values)[kWarps][kLanes], int place) {
  float highest = tops[0], weights = 0;
  for (int w = 1; w < kWarps; ++w) highest = fmaxf(highest, tops[w]);
  float4 sum = {0, 0, 0, 0};
  for (int w = 0; w < kWarps; ++w) {
    const float share = expf(tops[w] - highest);
    weights += totals[w] * share;
    sum = plus_times(sum, values[w][place], share);
  }
  return {sum.x / weights, sum.y / weights, sum.z / weights, sum.w / weights};
}

}  // namespace lathe::engine::cuda
