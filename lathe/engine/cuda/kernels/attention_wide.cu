// Attention and its gradient with heads of more than 128 numbers, which tiles of 64 rows have no
// room for: a block has 16 rows of one head, a warp two of them, and goes through the others 32 at
// a time, a lane for each.
//
// Operands are read as they lie and everything is float from there on, in every precision. A warp
// first has the scores of its rows with 32 others, then adds those others' rows, weighted, with the
// columns shared out among its lanes; so the only sums over lanes are those of the softmax.

#include "lathe/engine/cuda/kernels/attention.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = 8, kRowsOfWarp = 2, kOwn = kWarps * kRowsOfWarp, kOthers = kWarp;
constexpr int kElements = kMostWideHeadSize / kWarp;  // of a lane
using Sums = float[kRowsOfWarp][kElements];

// Rows are read four numbers at a time where all lanes read the same, and one by one where each
// has a row of its own: an odd distance keeps those in different banks.
__host__ __device__ inline int padded(int d) {
  return (d + 3) / 4 * 4;
}
__host__ __device__ inline int pitch_of(int d) {
  return padded(d) + 1;
}

// `count` rows of one head from `begin` on, zeros where there are none.
template <typename T>
__device__ void load_rows(const T* rows, std::int64_t stride, int begin, int count, int length,
                          int d, int pitch, float* to) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = warp; row < count; row += kWarps)
    for (int column = lane; column < padded(d); column += kWarp)
      to[row * pitch + column] = begin + row < length && column < d
                                     ? static_cast<float>(rows[(begin + row) * stride + column])
                                     : 0.0f;
}

// products[r] = dot(row r of the warp, the lane's row of the others).
__device__ void multiply_rows(const float* own, const float* others, int d, int warp, int lane,
                              float (&products)[kRowsOfWarp]) {
  const float* const other = others + lane * pitch_of(d);
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) products[r] = 0;
#pragma unroll 2
  for (int column = 0; column < padded(d); column += 4) {
    const float right[4] = {other[column], other[column + 1], other[column + 2], other[column + 3]};
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const float4 left =
          *reinterpret_cast<const float4*>(own + (warp * kRowsOfWarp + r) * padded(d) + column);
      products[r] = fmaf(left.x, right[0], products[r]);
      products[r] = fmaf(left.y, right[1], products[r]);
      products[r] = fmaf(left.z, right[2], products[r]);
      products[r] = fmaf(left.w, right[3], products[r]);
    }
  }
}

// sums[r] += sum over the others of the weight that their lane has for row r, times their rows.
__device__ void add_weighted(const float (&weights)[kRowsOfWarp], const float* others, int d,
                             int lane, Sums& sums) {
  for (int other = 0; other < kOthers; ++other) {
    float weight[kRowsOfWarp];
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) weight[r] = __shfl_sync(kAllLanes, weights[r], other);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int column = e * kWarp + lane;
      if (column >= d) continue;
      const float number = others[other * pitch_of(d) + column];
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) sums[r][e] = fmaf(weight[r], number, sums[r][e]);
    }
  }
}

template <typename T>
__device__ void store_row(const float (&sums)[kElements], int d, int lane, bool rounds, T* row) {
#pragma unroll
  for (int e = 0; e < kElements; ++e)
    if (e * kWarp + lane < d) store(row + e * kWarp + lane, sums[e], rounds);
}

__device__ bool is_kept(const KeptKeys& kept, int query, int key) {
  return (kept.bits(query, key) >> (key % kKeysOfBits) & 1u) != 0;
}

// What the three kernels know of their place.
struct Block {
  float *own, *own_second, *others, *others_second;  // tiles in shared memory
  int warp, lane;

  __device__ Block(float* room, int d)
      : own(room),
        own_second(own + kOwn * padded(d)),
        others(own_second + kOwn * padded(d)),
        others_second(others + kOthers * pitch_of(d)),
        warp(static_cast<int>(threadIdx.x) / kWarp),
        lane(static_cast<int>(threadIdx.x) % kWarp) {}
};
inline int bytes_of(int d) {
  return 2 * (kOwn * padded(d) + kOthers * pitch_of(d)) * static_cast<int>(sizeof(float));
}

template <typename T>
__global__ void __launch_bounds__(kWarps* kWarp) wide_kernel(AttentionArgs args) {
  extern __shared__ float4 room[];
  const AttentionShape& shape = args.shape;
  const Block block(reinterpret_cast<float*>(room), shape.d);
  const int d = shape.d, lane = block.lane, head = static_cast<int>(blockIdx.y);
  const bool rounds = shape.precision == Precision::Bf16;
  T* const y = static_cast<T*>(args.y);
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * d;
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), false, kOwn);
  if (place.sequence < 0) return clear_rows(y, shape.queries, width, width);
  const HeadPlace at = head_place(shape, place, head);
  const KeptKeys kept(shape, place, head);
  const float scale = shape.scale * kLog2E;
  load_rows(static_cast<const T*>(shape.q) + at.q, at.q_stride, place.begin, kOwn, place.lq, d,
            padded(d), block.own);
  Sums sums = {};
  float highest[kRowsOfWarp], total[kRowsOfWarp];
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    highest[r] = -INFINITY;
    total[r] = 0;
  }
  const int seen = keys_seen(shape, place, place.begin + kOwn);
  for (int k_begin = 0; k_begin < seen; k_begin += kOthers) {
    __syncthreads();  // the keys before are read
    load_rows(static_cast<const T*>(shape.k) + at.k, at.k_stride, k_begin, kOthers, place.lk, d,
              pitch_of(d), block.others);
    load_rows(static_cast<const T*>(shape.v) + at.k, at.k_stride, k_begin, kOthers, place.lk, d,
              pitch_of(d), block.others_second);
    __syncthreads();
    const int key = k_begin + lane;
    float weights[kRowsOfWarp];
    multiply_rows(block.own, block.others, d, block.warp, lane, weights);
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const int query = place.begin + block.warp * kRowsOfWarp + r;
      float score = weights[r] * scale;
      if (key >= place.lk)
        score = -INFINITY;
      else if (is_masked(shape, place, query, key))
        score = kMasked;
      float most = score;
#pragma unroll
      for (int distance = kWarp / 2; distance > 0; distance /= 2)
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
      most = fmaxf(most, highest[r]);
      const float shrink = power_of_two(highest[r] - most);
      highest[r] = most;
      weights[r] = power_of_two(score - most);
      total[r] = fmaf(total[r], shrink, weights[r]);  // of this lane's keys
      if (shape.threshold != 0)
        weights[r] = is_kept(kept, query, key) ? weights[r] * shape.dropout_scale : 0.0f;
#pragma unroll
      for (int e = 0; e < kElements; ++e) sums[r][e] *= shrink;
    }
    add_weighted(weights, block.others_second, d, lane, sums);
  }
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      total[r] += __shfl_xor_sync(kAllLanes, total[r], distance);
    const int query = place.begin + block.warp * kRowsOfWarp + r;
    if (query >= place.lq) continue;
    const float inverse = inverse_of(total[r]);
#pragma unroll
    for (int e = 0; e < kElements; ++e) sums[r][e] *= inverse;
    store_row(sums[r], d, lane, rounds, y + at.y + query * at.y_stride);
    if (lane == 0 && args.statistics != nullptr) {
      float* const numbers = args.statistics + statistics_place(shape, place, head, query);
      numbers[0] = highest[r];
      numbers[1] = inverse;
    }
  }
  clear_rows(y, shape.queries, width, width);
}

// A weight and the gradient of its score: `dscore` is the product of dout and the value. A masked
// key weighs nothing, or its query sees no key and its weights stay as they are.
struct WeightAndGradient {
  float weight, gradient;
};
__device__ WeightAndGradient differentiate(const AttentionShape& shape, const Place& place,
                                           const KeptKeys& kept, const QueryFacts& facts, int query,
                                           int key, float score, float dscore) {
  if (query >= place.lq || key >= place.lk) return {0, 0};
  const bool is_hidden = is_masked(shape, place, query, key);
  const float weight =
      power_of_two((is_hidden ? facts.masked : score * shape.scale * kLog2E) - facts.sum);
  float factor = 1;
  if (shape.threshold != 0) factor = is_kept(kept, query, key) ? shape.dropout_scale : 0.0f;
  return {weight * factor,
          is_hidden ? 0.0f : weight * fmaf(dscore, shape.scale * factor, -facts.mean)};
}

template <typename T>
__global__ void __launch_bounds__(kWarps* kWarp) wide_queries_kernel(AttentionGradientArgs args) {
  extern __shared__ float4 room[];
  const AttentionShape& shape = args.shape;
  const Block block(reinterpret_cast<float*>(room), shape.d);
  const int d = shape.d, lane = block.lane, head = static_cast<int>(blockIdx.y);
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * d;
  const std::int64_t stride = shape.q_stride != 0 ? shape.q_stride : width;
  T* const dq = static_cast<T*>(args.dq);
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), false, kOwn);
  if (place.sequence < 0) return clear_rows(dq, shape.queries, stride, width);
  const HeadPlace at = head_place(shape, place, head);
  const KeptKeys kept(shape, place, head);
  load_rows(static_cast<const T*>(shape.q) + at.q, at.q_stride, place.begin, kOwn, place.lq, d,
            padded(d), block.own);
  load_rows(static_cast<const T*>(args.dout) + at.y, at.y_stride, place.begin, kOwn, place.lq, d,
            padded(d), block.own_second);
  const QueryFacts* const facts = facts_of(args) + place.q_start * shape.heads + head;
  Sums sums = {};
  const int seen = keys_seen(shape, place, place.begin + kOwn);
  for (int k_begin = 0; k_begin < seen; k_begin += kOthers) {
    __syncthreads();
    load_rows(static_cast<const T*>(shape.k) + at.k, at.k_stride, k_begin, kOthers, place.lk, d,
              pitch_of(d), block.others);
    load_rows(static_cast<const T*>(shape.v) + at.k, at.k_stride, k_begin, kOthers, place.lk, d,
              pitch_of(d), block.others_second);
    __syncthreads();
    float scores[kRowsOfWarp], dscores[kRowsOfWarp];
    multiply_rows(block.own, block.others, d, block.warp, lane, scores);
    multiply_rows(block.own_second, block.others_second, d, block.warp, lane, dscores);
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const int query = place.begin + block.warp * kRowsOfWarp + r;
      dscores[r] = differentiate(shape, place, kept, facts[min(query, place.lq - 1) * shape.heads],
                                 query, k_begin + lane, scores[r], dscores[r])
                       .gradient;
    }
    add_weighted(dscores, block.others, d, lane, sums);
  }
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int query = place.begin + block.warp * kRowsOfWarp + r;
    if (query < place.lq)
      store_row(sums[r], d, lane, shape.precision == Precision::Bf16,
                dq + at.q + query * at.q_stride);
  }
  clear_rows(dq, shape.queries, stride, width);
}

template <typename T>
__global__ void __launch_bounds__(kWarps* kWarp) wide_keys_kernel(AttentionGradientArgs args) {
  extern __shared__ float4 room[];
  const AttentionShape& shape = args.shape;
  const Block block(reinterpret_cast<float*>(room), shape.d);
  const int d = shape.d, lane = block.lane;
  const bool rounds = shape.precision == Precision::Bf16;
  const std::int64_t width = static_cast<std::int64_t>(shape.kv_heads) * d;
  const std::int64_t stride = shape.k_stride != 0 ? shape.k_stride : width;
  T* const dk = static_cast<T*>(args.dk);
  T* const dv = static_cast<T*>(args.dv);
  const auto clear = [&] {
    clear_rows(dk, shape.keys, stride, width);
    clear_rows(dv, shape.keys, stride, width);
  };
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), true, kOwn);
  if (place.sequence < 0) return clear();
  const int heads_each = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * heads_each;
  const HeadPlace shared = head_place(shape, place, first_head);
  load_rows(static_cast<const T*>(shape.k) + shared.k, shared.k_stride, place.begin, kOwn, place.lk,
            d, padded(d), block.own);
  load_rows(static_cast<const T*>(shape.v) + shared.k, shared.k_stride, place.begin, kOwn, place.lk,
            d, padded(d), block.own_second);
  Sums key_sums = {}, value_sums = {};
  const int first = first_query_seeing(shape, place.begin);
  for (int head = first_head; head < first_head + heads_each; ++head) {
    const HeadPlace at = head_place(shape, place, head);
    const KeptKeys kept(shape, place, head);
    const QueryFacts* const facts = facts_of(args) + place.q_start * shape.heads + head;
    for (int q_begin = first; q_begin < place.lq; q_begin += kOthers) {
      __syncthreads();
      load_rows(static_cast<const T*>(shape.q) + at.q, at.q_stride, q_begin, kOthers, place.lq, d,
                pitch_of(d), block.others);
      load_rows(static_cast<const T*>(args.dout) + at.y, at.y_stride, q_begin, kOthers, place.lq, d,
                pitch_of(d), block.others_second);
      __syncthreads();
      const int query = q_begin + lane;
      const QueryFacts fact = facts[min(query, place.lq - 1) * shape.heads];
      float scores[kRowsOfWarp], dscores[kRowsOfWarp];
      multiply_rows(block.own, block.others, d, block.warp, lane, scores);
      multiply_rows(block.own_second, block.others_second, d, block.warp, lane, dscores);
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const WeightAndGradient now =
            differentiate(shape, place, kept, fact, query,
                          place.begin + block.warp * kRowsOfWarp + r, scores[r], dscores[r]);
        scores[r] = now.weight;
        dscores[r] = now.gradient;
      }
      add_weighted(scores, block.others_second, d, lane, value_sums);
      add_weighted(dscores, block.others, d, lane, key_sums);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int key = place.begin + block.warp * kRowsOfWarp + r;
    if (key >= place.lk) continue;
    store_row(key_sums[r], d, lane, rounds, dk + shared.k + key * shared.k_stride);
    store_row(value_sums[r], d, lane, rounds, dv + shared.k + key * shared.k_stride);
  }
  clear();
}

template <typename Args>
void launch(void (*kernel)(Args), const Args& args, bool by_keys, cudaStream_t on) {
  const AttentionShape& shape = args.shape;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of(shape.d));
  const dim3 grid(most_tiles(shape, by_keys, kOwn),
                  static_cast<unsigned>(by_keys ? shape.kv_heads : shape.heads));
  kernel<<<grid, kWarps * kWarp, bytes_of(shape.d), on>>>(args);
}

}  // namespace

void attend_wide(const AttentionArgs& args, cudaStream_t on) {
  launch(args.shape.elements == Number::BF16 ? wide_kernel<__nv_bfloat16> : wide_kernel<float>,
         args, false, on);
}

void differentiate_wide(const AttentionGradientArgs& args, cudaStream_t on) {
  const bool is_bf16 = args.shape.elements == Number::BF16;
  launch(is_bf16 ? wide_queries_kernel<__nv_bfloat16> : wide_queries_kernel<float>, args, false,
         on);
  launch(is_bf16 ? wide_keys_kernel<__nv_bfloat16> : wide_keys_kernel<float>, args, true, on);
}

}  // namespace lathe::engine::cuda
