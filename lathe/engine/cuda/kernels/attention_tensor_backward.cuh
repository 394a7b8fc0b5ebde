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

template <typename Products, int D>
inline constexpr int kBackwardBytes =
    static_cast<int>(sizeof(typename Products::Element)) *
    (2 * kTile * D + 4 * kQueries<D> * D + kTile * kQueries<D>)+static_cast<int>(sizeof(float)) *
    3 * kQueries<D>;

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
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = q_begin + rows + lane / 4 + half * 8;
    if (query >= place.lq) continue;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const int column = (first_run + n) * 8 + lane % 4 * 2;
      float* const to = dq + query * stride + column;
      if (column + 1 < d && d % 2 == 0) {
        auto* const two = reinterpret_cast<float2*>(to);
        float2 sum = make_float2(sums[n][2 * half], sums[n][2 * half + 1]);
        if (!is_first) {
          sum.x += two->x;
          sum.y += two->y;
        }
        *two = sum;
        continue;
      }
      for (int i = 0; i < 2; ++i)
        if (column + i < d) to[i] = sums[n][2 * half + i] + (is_first ? 0.0f : to[i]);
    }
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
  float* const highest = reinterpret_cast<float*>(dscores + kTile * Q);
  float* const inverse = highest + Q;
  float* const mean = inverse + Q;

  const AttentionShape& shape = args.shape;
  const bool is_bf16 = shape.elements == Number::BF16;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const std::int64_t k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t k_stride = shape.k_stride != 0 ? shape.k_stride : k_width;
  clear_rows_of(shape, args.dk, shape.keys, k_stride, k_width);
  clear_rows_of(shape, args.dv, shape.keys, k_stride, k_width);
  const int sequence = static_cast<int>(blockIdx.x) / parts;
  const int part = static_cast<int>(blockIdx.x) % parts;
  if (sequence >= real_size(shape.sequences)) return;
  const Place place = sequence_at(shape, sequence);
  const int heads_each = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * heads_each;
  const float scale = shape.scale * kLog2E;

  for (int k_begin = part * kTile; k_begin < place.lk; k_begin += parts * kTile) {
    const HeadPlace shared = head_place(shape, place, first_head);
    __syncthreads();  // the tile of keys before is read
    load_tile<Products, D, kTile>(shape.k, is_bf16, shared.k, k_stride, k_begin, place.lk, shape.d,
                                  thread, kTensorThreads, keys);
    load_tile<Products, D, kTile>(shape.v, is_bf16, shared.k, k_stride, k_begin, place.lk, shape.d,
                                  thread, kTensorThreads, values);
    close_copies();
    await_copies<0>();
    Products::round_tile(keys, 2 * kTile * D / kEach, thread, kTensorThreads);
    Accumulator dk[D / 8] = {}, dv[D / 8] = {};
    const int first_key = k_begin + warp * 16;
    for (int head = first_head; head < first_head + heads_each; ++head) {
      const HeadPlace at = head_place(shape, place, head);
      float* const dq = args.scratch + part * shape.queries.capacity * at.y_stride + at.y;
      const KeptKeys kept(shape, place, head);
      const auto load = [&](int q_begin, int copy) {
        Element* const to = copies + copy * 2 * Q * D;
        if (q_begin < place.lq) {
          load_tile<Products, D, Q>(shape.q, is_bf16, at.q, at.q_stride, q_begin, place.lq, shape.d,
                                    thread, kTensorThreads, to);
          load_tile<Products, D, Q>(args.dout, is_bf16, at.y, at.y_stride, q_begin, place.lq,
                                    shape.d, thread, kTensorThreads, to + Q * D);
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
        Products::round_tile(queries, 2 * Q * D / kEach, thread, kTensorThreads);
        __syncthreads();
        load(q_begin + Q, 1 - copy);
        {
          // dot(dout, y) of each query, several threads a row.
          constexpr int kThreadsOfRow = kTensorThreads / Q;
          const int row = thread / kThreadsOfRow, query = q_begin + row;
          float sum = 0;
          if (query < place.lq) {
            const std::int64_t start = at.y + query * at.y_stride;
            for (int c = thread % kThreadsOfRow; c * kEach < shape.d; c += kThreadsOfRow) {
              const Element* const chunk = douts + chunk_at<Element, D>(row, c);
#pragma unroll
              for (int e = 0; e < kEach; ++e)
                if (c * kEach + e < shape.d)
                  sum = fmaf(static_cast<float>(chunk[e]),
                             element_at(args.y, is_bf16, start + c * kEach + e), sum);
            }
          }
          for (int distance = kThreadsOfRow / 2; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(kAllLanes, sum, distance);
          if (thread % kThreadsOfRow == 0) {
            const bool is_query = query < place.lq;
            const float* const numbers =
                args.statistics + statistics_place(shape, place, head, is_query ? query : 0);
            highest[row] = is_query ? numbers[0] : INFINITY;  // of no query: weights are zero
            inverse[row] = is_query ? numbers[1] : 0.0f;
            mean[row] = sum;
          }
        }
        Accumulator weight[kRuns], dscore[kRuns];
        multiply_tiles<Products, D, kRuns>(keys, warp * 16, queries, lane, weight);
        multiply_tiles<Products, D, kRuns>(values, warp * 16, douts, lane, dscore);
        __syncthreads();  // the statistics are there
        // Bit 4 n + i for number i of run n.
        std::uint32_t masked = 0, beyond = 0;
        if (!is_plain(shape, place, q_begin, k_begin, kTile)) {
          for (int bit = 0; bit < 4 * kRuns; ++bit) {
            const int key = first_key + lane / 4 + bit / 2 % 2 * 8;
            const int query = q_begin + bit / 4 * 8 + lane % 4 * 2 + bit % 2;
            const bool is_key = key < place.lk;
            beyond |= (is_key ? 0u : 1u) << bit;
            masked |= (!is_key || is_masked(shape, place, query, key) ? 1u : 0u) << bit;
          }
        }
        const KeptByKeys<kRuns> keeps(kept, q_begin, first_key, lane);
#pragma unroll
        for (int n = 0; n < kRuns; ++n) {
          const std::uint32_t bits = shape.threshold != 0 ? keeps.of(n) : 0;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int column = n * 8 + lane % 4 * 2 + i % 2;
            float score = weight[n][i] * scale;
            const bool is_seen = (masked >> (4 * n + i) & 1u) == 0;
            if (!is_seen) score = (beyond >> (4 * n + i) & 1u) != 0 ? -INFINITY : kMasked;
            const float p = power_of_two(score - highest[column]) * inverse[column];
            float factor = 1;
            if (shape.threshold != 0) factor = (bits >> i & 1u) != 0 ? shape.dropout_scale : 0.0f;
            weight[n][i] = p * factor;
            // A masked key weighs nothing, or its query sees no key and its weights stay as they
            // are.
            dscore[n][i] =
                is_seen ? gradient_of_score(p, dscore[n][i] * factor, mean[column], shape.scale)
                        : 0.0f;
          }
        }
        Products::template keep_across<Q>(dscore, warp * 16, lane, dscores);
        add_weighted<Products, D, kRuns>(weight, douts, lane, dv);
        add_weighted<Products, D, kRuns>(dscore, queries, lane, dk);
        __syncthreads();  // the gradients of the scores are there
        add_to_queries<Products, D>(dscores, keys, place, q_begin, shape.d, at.y_stride,
                                    k_begin == part * kTile, warp, lane, dq);
      }
    }
    store_tile<D>(dk, shape, shared.k, k_stride, first_key, place.lk, lane, args.dk);
    store_tile<D>(dv, shape, shared.k, k_stride, first_key, place.lk, lane, args.dv);
  }
}

template <typename Products, int D>
void run_tensor_backward(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  const auto kernel = tensor_backward<Products, D>;
  constexpr int kBytes = kBackwardBytes<Products, D>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(args.shape.sequences.capacity * parts),
                  static_cast<unsigned>(args.shape.kv_heads));
  kernel<<<grid, kTensorThreads, kBytes, on>>>(args, parts);
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
