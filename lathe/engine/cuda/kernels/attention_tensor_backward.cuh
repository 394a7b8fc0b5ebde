#pragma once

// The gradient of attention by tensor cores: a block has 64 keys of one head at a time, a warp 16
// of them, and goes through the queries that see them.
//
// Scores are made with keys as rows, so that weights and their gradients are at once the left
// operands of dv and dk, in registers; only for dq they cross over, through shared memory. dq goes
// to the block's part in device memory, as in attention_float_backward.cu.

#include "lathe/engine/cuda/kernels/attention_tensor.cuh"

namespace lathe::engine::cuda {

/// Queries of a tile: what is kept for each grows with the head.
template <int D>
inline constexpr int kQueries = D > 64 ? 32 : 64;

/// Keys and values, two times queries and dout, the gradients of scores, two times facts; where
/// queries come raw, those and dout once more as float.
template <typename Products, int D>
int backward_bytes(const AttentionShape& shape) {
  constexpr int Q = kQueries<D>, kElements = 2 * kTile * D + 4 * Q * D + kTile * Q;
  const int raw = comes_raw<Products>(shape) ? 2 * Q * D * static_cast<int>(sizeof(float)) : 0;
  return kElements * static_cast<int>(sizeof(typename Products::Element)) +
         2 * Q * static_cast<int>(sizeof(QueryFacts)) + raw;
}

/// Which weights of a warp's 16 keys by 8 N queries dropout keeps: a lane draws for two queries of
/// run g, or with N = 4 for one half of the keys.
template <int N>
struct KeptByKeys {
  std::uint32_t own;
  int lane;

  __device__ KeptByKeys(const KeptKeys& kept, int q_begin, int key, int of_lane)
      : own(0), lane(of_lane) {
    if (kept.threshold == 0) return;
    const int g = lane / 4, query = q_begin + g % N * 8 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < N / 2; ++i)
      own |= kept.bits(query + i % 2, key + (N == 8 ? i / 2 : g / N) * 8) << (8 * i);
  }
  /// Bits 0 to 3 for the lane's four numbers of run n.
  __device__ std::uint32_t of(int n) const {
    const int t = lane % 4, g = lane / 4;
    if constexpr (N == 8) {
      const std::uint32_t word = __shfl_sync(kAllLanes, own, n * 4 + t) >> g;
      return (word & 1u) | (word >> 7 & 2u) | (word >> 14 & 4u) | (word >> 21 & 8u);
    } else {
      const std::uint32_t low = __shfl_sync(kAllLanes, own, n * 4 + t) >> g;
      const std::uint32_t high = __shfl_sync(kAllLanes, own, (n + N) * 4 + t) >> g;
      return (low & 1u) | (low >> 7 & 2u) | (high << 2 & 4u) | (high >> 5 & 8u);
    }
  }
};

/// Which of a lane's scores do not count as they are: bit 4 n + i for number i of run n. A loop,
/// because few tiles are at an edge and registers are short.
template <int N>
__device__ std::uint32_t hidden_scores(const AttentionShape& shape, const Place& place, int q_begin,
                                       int k_begin, int first_key, int lane) {
  if (is_plain(shape, place, q_begin, k_begin, kTile)) return 0;
  std::uint32_t hidden = 0;
#pragma unroll 1
  for (int bit = 0; bit < 4 * N; ++bit) {
    const int key = first_key + lane / 4 + bit / 2 % 2 * 8;
    const int query = q_begin + bit / 4 * 8 + lane % 4 * 2 + bit % 2;
    if (key >= place.lk || is_masked(shape, place, query, key)) hidden |= 1u << bit;
  }
  return hidden;
}

/// Adds 64 keys' share of dq to the block's part, or begins it.
template <typename Products, int D>
__device__ void add_to_queries(const typename Products::Element* dscores,
                               const typename Products::Element* keys, const Place& place,
                               int q_begin, int d, std::int64_t stride, bool is_first, int warp,
                               int lane, float* dq) {
  constexpr int Q = kQueries<D>, kWarpsOfRow = kTile / Q, N = D / 8 / kWarpsOfRow;
  const int rows = warp % (Q / 16) * 16, first_run = warp / (Q / 16) * N;
  Accumulator sums[N] = {};
#pragma unroll
  for (int step = 0; step < kTile / Products::kStep; ++step) {
    Fragment a;
    Products::template load_kept<Q>(dscores, rows, step, lane, a);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      Fragment b;
      Products::template load_across<D>(keys, step, (first_run + n) / 2, lane, b);
      Products::multiply(a, b[0], b[1], sums[n]);
      Products::multiply(a, b[2], b[3], sums[n + 1]);
    }
  }
  // What is there already is read all at once, or each read would wait for the write before it.
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = q_begin + rows + lane / 4 + half * 8;
    if (query >= place.lq) continue;
    float* const to = dq + query * stride + first_run * 8 + lane % 4 * 2;
    const int left = d - first_run * 8 - lane % 4 * 2;
    if (d % 2 == 0) {
      float2 before[N] = {};
      if (!is_first) {
#pragma unroll
        for (int n = 0; n < N; ++n)
          if (n * 8 < left) before[n] = *reinterpret_cast<const float2*>(to + n * 8);
      }
#pragma unroll
      for (int n = 0; n < N; ++n)
        if (n * 8 < left)
          *reinterpret_cast<float2*>(to + n * 8) =
              make_float2(before[n].x + sums[n][2 * half], before[n].y + sums[n][2 * half + 1]);
      continue;
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
      for (int i = 0; i < 2; ++i)
        if (n * 8 + i < left)
          to[n * 8 + i] = sums[n][2 * half + i] + (is_first ? 0.0f : to[n * 8 + i]);
  }
}

template <typename Products, int D>
__global__ void __launch_bounds__(kTensorThreads)
    tensor_backward(AttentionGradientArgs args, int parts) {
  using Element = typename Products::Element;
  constexpr int Q = kQueries<D>, kRuns = Q / 8;
  constexpr int kEach = 16 / static_cast<int>(sizeof(Element));
  extern __shared__ uint4 chunks[];
  Element* const keys = reinterpret_cast<Element*>(chunks);
  Element* const values = keys + kTile * D;
  Element* const copies = values + kTile * D;  // two times queries and dout
  Element* const dscores = copies + 4 * Q * D;
  auto* const facts = reinterpret_cast<QueryFacts*>(dscores + kTile * Q);  // two times

  const AttentionShape& shape = args.shape;
  const bool is_raw = comes_raw<Products>(shape);
  float* const raw = is_raw ? reinterpret_cast<float*>(facts + 2 * Q) : nullptr;
  const bool is_bf16 = shape.elements == Number::BF16;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const std::int64_t k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t k_stride = shape.k_stride != 0 ? shape.k_stride : k_width;
  const auto clear = [&] {
    clear_rows_of(shape, args.dk, shape.keys, k_stride, k_width);
    clear_rows_of(shape, args.dv, shape.keys, k_stride, k_width);
  };
  const int sequence = static_cast<int>(blockIdx.x) / parts;
  const int part = static_cast<int>(blockIdx.x) % parts;
  if (sequence >= real_size(shape.sequences)) return clear();
  const Place place = sequence_at(shape, sequence);
  const int heads_each = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * heads_each;
  const float scale = shape.scale * kLog2E;

  for (int k_begin = part * kTile; k_begin < place.lk; k_begin += parts * kTile) {
    const HeadPlace shared = head_place(shape, place, first_head);
    __syncthreads();  // the tile of keys before is read
    load_tile<Products, D, kTile>(shape.k, is_bf16, shared.k, k_stride, k_begin, place.lk, shape.d,
                                  thread, kTensorThreads, keys, nullptr);
    load_tile<Products, D, kTile>(shape.v, is_bf16, shared.k, k_stride, k_begin, place.lk, shape.d,
                                  thread, kTensorThreads, values, nullptr);
    close_copies();
    await_copies<0>();
    Products::settle(keys, nullptr, 2 * kTile * D / kEach, thread, kTensorThreads);
    Accumulator dk[1][D / 8] = {}, dv[1][D / 8] = {};
    const int first_key = k_begin + warp * 16;
    for (int head = first_head; head < first_head + heads_each; ++head) {
      const HeadPlace at = head_place(shape, place, head);
      float* const dq = part_of(args, part) + at.y;
      const KeptKeys kept(shape, place, head);
      const auto load = [&](int q_begin, int copy) {
        Element* const to = copies + copy * 2 * Q * D;
        if (q_begin < place.lq) {
          load_tile<Products, D, Q>(shape.q, is_bf16, at.q, at.q_stride, q_begin, place.lq, shape.d,
                                    thread, kTensorThreads, to, raw);
          load_tile<Products, D, Q>(args.dout, is_bf16, at.y, at.y_stride, q_begin, place.lq,
                                    shape.d, thread, kTensorThreads, to + Q * D,
                                    is_raw ? raw + Q * D : nullptr);
          if (thread < Q) {
            const bool is_there = q_begin + thread < place.lq;
            const std::int64_t row = place.q_start + (is_there ? q_begin + thread : 0);
            copy_ahead(facts + copy * Q + thread, facts_of(args) + row * shape.heads + head,
                       is_there);
          }
        }
        close_copies();
      };
      const int first = first_query_seeing(shape, k_begin);
      __syncthreads();
      load(first, 0);
      int copy = 0;
      for (int q_begin = first; q_begin < place.lq; q_begin += Q, copy = 1 - copy) {
        Element* const queries = copies + copy * 2 * Q * D;
        Element* const douts = queries + Q * D;
        await_copies<0>();
        Products::settle(queries, raw, 2 * Q * D / kEach, thread, kTensorThreads);
        __syncthreads();
        load(q_begin + Q, 1 - copy);
        Accumulator weight[1][kRuns], dscore[1][kRuns];
        multiply_tiles<Products, D, kRuns>(keys, warp * 16, queries, lane, weight);
        multiply_tiles<Products, D, kRuns>(values, warp * 16, douts, lane, dscore);
        const std::uint32_t hidden =
            hidden_scores<kRuns>(shape, place, q_begin, k_begin, first_key, lane);
        const KeptByKeys<kRuns> keeps(kept, q_begin, first_key, lane);
        const QueryFacts* const now = facts + copy * Q + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < kRuns; ++n) {
          const std::uint32_t bits = shape.threshold != 0 ? keeps.of(n) : 0;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const QueryFacts* const of_query = now + n * 8 + i % 2;
            const bool is_hidden = (hidden >> (4 * n + i) & 1u) != 0;
            float p = power_of_two(fmaf(weight[0][n][i], scale, -of_query->sum));
            if (is_hidden) p = power_of_two(of_query->masked - of_query->sum);
            float factor = 1, gradient_factor = shape.scale;
            if (shape.threshold != 0) {
              const bool is_kept = (bits >> i & 1u) != 0;
              factor = is_kept ? shape.dropout_scale : 0.0f;
              gradient_factor = is_kept ? shape.scale * shape.dropout_scale : 0.0f;
            }
            weight[0][n][i] = p * factor;
            dscore[0][n][i] = p * fmaf(dscore[0][n][i], gradient_factor, -of_query->mean);
            // A masked key weighs nothing, or its query sees no key and its weights stay as they
            // are.
            if (is_hidden) dscore[0][n][i] = 0;
          }
        }
        Products::template keep_across<Q>(dscore[0], warp * 16, lane, dscores);
        add_weighted<Products, D, kRuns, 1>(weight, douts, lane, dv);
        add_weighted<Products, D, kRuns, 1>(dscore, queries, lane, dk);
        __syncthreads();  // the gradients of the scores are there
        add_to_queries<Products, D>(dscores, keys, place, q_begin, shape.d, at.y_stride,
                                    k_begin == part * kTile, warp, lane, dq);
      }
    }
    __syncthreads();  // keys and values are read: their places are free
    store_tile<Products, D>(dk[0], shape, shared.k, k_stride, first_key, place.lk, lane,
                            keys + warp * 16 * D, args.dk);
    store_tile<Products, D>(dv[0], shape, shared.k, k_stride, first_key, place.lk, lane,
                            values + warp * 16 * D, args.dv);
  }
  clear();
}

template <typename Products, int D>
void run_tensor_backward(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  const auto kernel = tensor_backward<Products, D>;
  const int bytes = backward_bytes<Products, D>(args.shape);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>(args.shape.sequences.capacity * parts),
                  static_cast<unsigned>(args.shape.kv_heads));
  kernel<<<grid, kTensorThreads, bytes, on>>>(args, parts);
}

template <typename Products>
void run_tensor_backward(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  if (args.shape.d <= 32)
    run_tensor_backward<Products, 32>(args, parts, on);
  else if (args.shape.d <= 64)
    run_tensor_backward<Products, 64>(args, parts, on);
  else
    run_tensor_backward<Products, 128>(args, parts, on);
}

}  // namespace lathe::engine::cuda
