// Attention of one token to the caches of its sequence, into which its key and value are put.
//
// A block is a head. Its lanes share a key, four features each, and its warps take turns at keys;
// the first keys and values, and the angles that the token turns by, are asked for before the
// kernel in front has ended. Who needs the token's own key turns it himself, so that nobody waits
// for it to be in the cache. What warps hold is joined at the end in their order.

#include "lathe/engine/cuda/kernels/cached_attention.cuh"
#include "lathe/engine/cuda/kernels/packed_linear.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kTokenWarps = 8, kTurns = 8;

// Four neighbouring features of a head of 4 kLanes, and those that they are turned with.
template <int kLanes>
__device__ float4 turned(const TokenRotation& rotation, const float* head, int place,
                         const double2* angles) {
  constexpr int kHalf = 2 * kLanes;
  const float4 own = __ldcg(reinterpret_cast<const float4*>(head) + place);
  if (!rotation.is_there) return own;
  // (a, b) becomes (a cos - b sin, a sin + b cos).
  const auto first = [](double a, double b, double2 angle) {
    return static_cast<float>(a * angle.y - b * angle.x);
  };
  const auto second = [](double a, double b, double2 angle) {
    return static_cast<float>(a * angle.x + b * angle.y);
  };
  if (rotation.is_interleaved) {
    const double2 low = angles[2 * place], high = angles[2 * place + 1];
    return {first(own.x, own.y, low), second(own.x, own.y, low), first(own.z, own.w, high),
            second(own.z, own.w, high)};
  }
  const float4 other = __ldcg(reinterpret_cast<const float4*>(head) + (place ^ (kLanes / 2)));
  const double2* const angle = angles + 4 * place % kHalf;
  if (place < kLanes / 2)
    return {first(own.x, other.x, angle[0]), first(own.y, other.y, angle[1]),
            first(own.z, other.z, angle[2]), first(own.w, other.w, angle[3])};
  return {second(other.x, own.x, angle[0]), second(other.y, own.y, angle[1]),
          second(other.z, own.z, angle[2]), second(other.w, own.w, angle[3])};
}

// What the caches hold of four features of the token's own, which lanes of a part share; written
// by those who are to.
template <CacheKind kKind, int kLanes>
__device__ float4 put_own(const CachedAttentionArgs& args, float4 own, std::byte* row, int kv_head,
                          int place, bool is_writer) {
  const int four = kv_head * kLanes + place;
  if constexpr (kKind == CacheKind::Bf16) {
    const uint2 bits = {near_bf16(own.x) | near_bf16(own.y) << 16,
                        near_bf16(own.z) | near_bf16(own.w) << 16};
    if (is_writer) reinterpret_cast<uint2*>(row)[four] = bits;
    return {__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000u),
            __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000u)};
  } else if constexpr (kKind == CacheKind::Int8) {
    const float features[4] = {own.x, own.y, own.z, own.w};
    float most = 0;
    int has_nan = 0;
    for (const float x : features) {
      most = fmaxf(most, finite_magnitude(x));
      has_nan |= x != x;
    }
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
      has_nan |= __shfl_xor_sync(kAllLanes, has_nan, distance);
    }
    const float scale = int8_scale(most, has_nan != 0);
    float rounded[4];
    unsigned bits = 0;
    for (int i = 0; i < 4; ++i) {
      const int number = int8_number(features[i], scale);
      rounded[i] = scale * static_cast<float>(number);
      bits |= (static_cast<unsigned>(number) & 0xffu) << 8 * i;
    }
    if (is_writer) reinterpret_cast<unsigned*>(row)[four] = bits;
    if (is_writer && place == 0) scales_of_row(args, row)[kv_head] = scale;
    return {rounded[0], rounded[1], rounded[2], rounded[3]};
  } else {
    if (is_writer) reinterpret_cast<float4*>(row)[four] = own;
    return own;
  }
}

template <CacheKind kKind, int kLanes>
__global__ void __launch_bounds__(kTokenWarps* kWarp, 2)
    attend_token_kernel(const __grid_constant__ CachedAttentionArgs args) {
  constexpr int kKeys = kWarp / kLanes, kStep = kKeys * kTurns, kFeatures = 4 * kLanes;
  __shared__ double2 angles[kFeatures / 2];
  __shared__ float tops[kTokenWarps], totals[kTokenWarps];
  __shared__ float4 values[kTokenWarps][kLanes];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int part = lane / kLanes, place = lane % kLanes;
  const auto head = static_cast<int>(blockIdx.x);
  const int shared_by = args.heads / args.kv_heads, kv_head = head / shared_by;

  // The inputs of a run are there when its first kernel ends, and the caches of the tokens before.
  const std::int64_t start = integer_at(args.starts, 0), length = integer_at(args.lengths, 0);
  const bool is_inside = start >= 0 && length >= 0 && start + length < args.rows &&
                         real_size(args.tokens) > 0 && integer_at(args.offsets, 0) == 0;
  const std::int64_t keys = is_inside ? length + 1 : 0;
  float4 key_rows[kTurns], value_rows[kTurns];
  const auto load = [&](std::int64_t begin) {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::int64_t key = begin + part + turn * kKeys, at = (start + key) * args.row_bytes;
      key_rows[turn] = value_rows[turn] = {0, 0, 0, 0};
      if (key >= keys - 1) continue;
      key_rows[turn] = cached_four<kKind>(args, args.k_cache + at, kv_head, 4 * place);
      value_rows[turn] = cached_four<kKind>(args, args.v_cache + at, kv_head, 4 * place);
    }
  };
  load(warp * kStep);
  if (args.rotation.is_there && threadIdx.x < kFeatures / 2) {
    double2 angle;
    sincos(static_cast<double>(integer_at(args.rotation.positions, 0)) *
               args.rotation.frequencies[threadIdx.x],
           &angle.x, &angle.y);
    angles[threadIdx.x] = angle;
  }
  __syncthreads();
  wait_for_previous();
  let_next_begin();

  float4* const y = reinterpret_cast<float4*>(args.y + head * kFeatures);
  if (!is_inside) {
    if (threadIdx.x == 0 && real_size(args.tokens) > 0) report(args.fault);
    if (threadIdx.x < kLanes) y[threadIdx.x] = {0, 0, 0, 0};
    return;
  }
  const float4 query =
      times(turned<kLanes>(args.rotation, args.q + head * kFeatures, place, angles), args.scale);
  const bool is_writer = head % shared_by == 0 && warp == 0 && part == 0;
  const std::int64_t own_row = (start + length) * args.row_bytes;
  const float4 own_key = put_own<kKind, kLanes>(
      args, turned<kLanes>(args.rotation, args.k + kv_head * kFeatures, place, angles),
      args.new_k + own_row, kv_head, place, is_writer);
  const float4 own_value = put_own<kKind, kLanes>(
      args, __ldcg(reinterpret_cast<const float4*>(args.v + kv_head * kFeatures) + place),
      args.new_v + own_row, kv_head, place, is_writer);

  KeysSeen<kLanes> seen;
  for (std::int64_t begin = warp * kStep; begin < keys; begin += kTokenWarps * kStep) {
    if (begin != warp * kStep) load(begin);
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if (begin + part + turn * kKeys != length) continue;
      key_rows[turn] = own_key;
      value_rows[turn] = own_value;
    }
    seen.add(query, key_rows, value_rows, begin + part, keys);
  }
  seen.put(tops, totals, values, warp, lane);
  __syncthreads();
  if (threadIdx.x < kLanes)
    y[threadIdx.x] = joined<kTokenWarps>(tops, totals, values, static_cast<int>(threadIdx.x));
}

template <CacheKind kKind, int kLanes>
void attend_token(const CachedAttentionArgs& args, Stream* stream) {
  launch_early(args.may_begin_early, attend_token_kernel<kKind, kLanes>,
               dim3(static_cast<unsigned>(args.heads)), kTokenWarps * kWarp, 0, stream, args);
}

}  // namespace

void attend_token(const CachedAttentionArgs& args, Stream* stream) {
  by_cache_kind(args.kind, [&](auto kind) {
    if (args.d == 32)
      attend_token<kind(), 8>(args, stream);
    else if (args.d == 64)
      attend_token<kind(), 16>(args, stream);
    else
      attend_token<kind(), 32>(args, stream);
  });
}

}  // namespace lathe::engine::cuda
