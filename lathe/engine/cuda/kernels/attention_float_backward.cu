// The gradient of attention in float: a block has 64 keys of one head at a time, and goes through
// the queries that see them, two groups of threads taking every second tile of queries each.
//
// Weights come back from the forward pass's statistics, so a tile costs five products: scores, and
// dout by values; dv, dk and dq. Sums for keys stay in registers and are joined at the end. Those
// for queries go to device memory: the block adds all its tiles of keys to one part of dq, which
// belongs to no other block, so that the order of additions is always the same.

#include "lathe/engine/cuda/kernels/attention_float.cuh"

namespace lathe::engine::cuda {
namespace {

// How a block uses shared memory: tiles of queries are copied ahead where there is room, and
// weights and their gradients have places of their own.
template <int D, int Groups, int Copies, int Matrices>
struct Layout {
  static constexpr int kRowsTile = kTile * D, kScoresTile = kTile * kTile;
  static constexpr int kGroupFloats = 2 * Copies * kRowsTile + Matrices * kScoresTile;
  static constexpr int kBytes =
      static_cast<int>(sizeof(float)) * (2 * kRowsTile + Groups * kGroupFloats);
};

// dot(dout, y) of a thread's rows, dout in shared memory.
template <int D>
__device__ void products_of_rows(const float* douts, const float* y, std::int64_t stride, int begin,
                                 int length, int d, int ty, int tx, float (&mean)[kRows]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = ty * kRows + i;
    mean[i] = 0;
#pragma unroll
    for (int part = 0; part < Columns<D>::kParts; ++part) {
      const int column = Columns<D>::at(tx, part);
      float run[Columns<D>::kRun];
      load_run<D>(douts, row, column, run);
      const float* const from = y + (begin + row) * stride + column;
      if (begin + row >= length) continue;
#pragma unroll
      for (int e = 0; e < Columns<D>::kRun; ++e)
        if (column + e < d) mean[i] = fmaf(run[e], from[e], mean[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) mean[i] = join_row(mean[i], Add());
}

// Adds the second group's sums to the first's and writes them.
template <int D, int Groups>
__device__ void join_and_store(Sums<D>& sums, float* handed, int group, int thread, int begin,
                               int length, int d, std::int64_t stride, int ty, int tx,
                               float* rows) {
  if constexpr (Groups > 1) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int c = 0; c < Columns<D>::kCount; ++c)
        if (group == 1) handed[(i * Columns<D>::kCount + c) * kGroup + thread] = sums[i][c];
    __syncthreads();
    if (group == 1) return;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int c = 0; c < Columns<D>::kCount; ++c)
        sums[i][c] += handed[(i * Columns<D>::kCount + c) * kGroup + thread];
  }
  store_rows<D>(sums, begin, length, d, stride, ty, tx, rows);
}

template <int D, int Groups, int Copies, int Matrices>
__global__ void __launch_bounds__(kGroup* Groups)
    backward_kernel(AttentionGradientArgs args, int parts) {
  using Room = Layout<D, Groups, Copies, Matrices>;
  extern __shared__ float4 room[];
  float* const keys = reinterpret_cast<float*>(room);
  float* const values = keys + Room::kRowsTile;
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  const int thread = static_cast<int>(threadIdx.x) % kGroup;
  float* const own = values + Room::kRowsTile + group * Room::kGroupFloats;
  float* const weights = own + 2 * Copies * Room::kRowsTile;
  float* const dscores = weights + (Matrices - 1) * Room::kScoresTile;

  const AttentionShape& shape = args.shape;
  const int ty = thread / kLanes, tx = thread % kLanes;
  const std::int64_t k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t k_stride = shape.k_stride != 0 ? shape.k_stride : k_width;
  clear_rows(static_cast<float*>(args.dk), shape.keys, k_stride, k_width);
  clear_rows(static_cast<float*>(args.dv), shape.keys, k_stride, k_width);
  const int sequence = static_cast<int>(blockIdx.x) / parts;
  const int part = static_cast<int>(blockIdx.x) % parts;
  if (sequence >= real_size(shape.sequences)) return;
  const Place place = sequence_at(shape, sequence);
  const int heads_each = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * heads_each;
  const float scale = shape.scale * kLog2E;
  const auto meet_group = [&] { meet<kGroup>(1 + group); };

  for (int k_begin = part * kTile; k_begin < place.lk; k_begin += parts * kTile) {
    const HeadPlace shared = head_place(shape, place, first_head);
    __syncthreads();  // the tile of keys before is read
    load_rows<D>(static_cast<const float*>(shape.k) + shared.k, shared.k_stride, k_begin, place.lk,
                 shape.d, static_cast<int>(threadIdx.x), kGroup * Groups, keys);
    load_rows<D>(static_cast<const float*>(shape.v) + shared.k, shared.k_stride, k_begin, place.lk,
                 shape.d, static_cast<int>(threadIdx.x), kGroup * Groups, values);
    close_copies();
    await_copies<0>();
    __syncthreads();
    Sums<D> dk = {}, dv = {};
    for (int head = first_head; head < first_head + heads_each; ++head) {
      const HeadPlace at = head_place(shape, place, head);
      const float* const dout = static_cast<const float*>(args.dout) + at.y;
      const float* const y = static_cast<const float*>(args.y) + at.y;
      float* const dq = args.scratch + part * shape.queries.capacity * at.y_stride + at.y;
      const KeptKeys kept(shape, place, head);
      const int first = first_query_seeing(shape, k_begin) + group * kTile;
      const auto load = [&](int q_begin, int copy) {
        float* const to = own + copy * 2 * Room::kRowsTile;
        if (q_begin < place.lq) {
          load_rows<D>(static_cast<const float*>(shape.q) + at.q, at.q_stride, q_begin, place.lq,
                       shape.d, thread, kGroup, to);
          load_rows<D>(dout, at.y_stride, q_begin, place.lq, shape.d, thread, kGroup,
                       to + Room::kRowsTile);
        }
        close_copies();
      };
      load(first, 0);
      int copy = 0;
      for (int q_begin = first; q_begin < place.lq; q_begin += Groups * kTile) {
        const float* const queries = own + copy * 2 * Room::kRowsTile;
        const float* const douts = queries + Room::kRowsTile;
        if constexpr (Copies > 1) {
          // Everybody is done with the other copy: its last reader met the group after it.
          load(q_begin + Groups * kTile, 1 - copy);
          copy = 1 - copy;
          await_copies<1>();
        } else {
          await_copies<0>();
        }
        meet_group();
        float mean[kRows];
        products_of_rows<D>(douts, y, at.y_stride, q_begin, place.lq, shape.d, ty, tx, mean);
        Scores weight, dscore;
        multiply_rows<D>(queries, keys, ty, tx, weight);
        multiply_rows<D>(douts, values, ty, tx, dscore);
        const std::uint32_t bits =
            shape.threshold != 0 ? draw_kept(kept, q_begin, k_begin, ty, tx) : 0;
        const bool plain = is_plain(shape, place, q_begin, k_begin, kTile);
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const int query = q_begin + ty * kRows + i;
          float highest = INFINITY, inverse = 0;  // of no query: weights are zero
          if (query < place.lq) {
            const float* const numbers =
                args.statistics + statistics_place(shape, place, head, query);
            highest = numbers[0];
            inverse = numbers[1];
          }
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            const int key = k_begin + tx * kColumns + j;
            float score = weight[i][j] * scale;
            bool masked = false;
            if (!plain) {
              masked = key >= place.lk || is_masked(shape, place, query, key);
              if (masked) score = key >= place.lk ? -INFINITY : kMasked;
            }
            const float p = power_of_two(score - highest) * inverse;
            float factor = 1;
            if (shape.threshold != 0)
              factor = (bits >> (4 * i + j) & 1u) != 0 ? shape.dropout_scale : 0.0f;
            weight[i][j] = p * factor;
            // A masked key weighs nothing, or its query sees no key and its weights stay as they
            // are.
            dscore[i][j] =
                masked ? 0.0f : gradient_of_score(p, dscore[i][j] * factor, mean[i], shape.scale);
          }
        }
        const int rows = min(kTile, place.lq - q_begin);
        store_scores(weight, ty, tx, weights);
        if constexpr (Matrices > 1) store_scores(dscore, ty, tx, dscores);
        meet_group();
        add_weighted_by_columns<D>(weights, douts, rows, ty, tx, dv);
        if constexpr (Matrices == 1) {
          meet_group();
          store_scores(dscore, ty, tx, dscores);
          meet_group();
        }
        add_weighted_by_columns<D>(dscores, queries, rows, ty, tx, dk);
        Sums<D> sums = {};
        add_weighted<D>(dscores, keys, min(kTile, place.lk - k_begin), ty, tx, sums);
        const bool is_first = k_begin == part * kTile;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const int row = q_begin + ty * kRows + i;
          if (row >= place.lq) continue;
          for_each_run<D>(sums, i, shape.d, tx, [&](int column, const float* run) {
            float* const to = dq + row * at.y_stride + column;
            float total[Columns<D>::kRun];
#pragma unroll
            for (int e = 0; e < Columns<D>::kRun; ++e)
              total[e] = is_first || column + e >= shape.d ? run[e] : to[e] + run[e];
            store_run<D>(to, total, shape.d - column);
          });
        }
        meet_group();
        if constexpr (Copies == 1) load(q_begin + Groups * kTile, 0);
      }
    }
    const auto k_stride_now = shared.k_stride;
    join_and_store<D, Groups>(dk, values + Room::kRowsTile, group, thread, k_begin, place.lk,
                              shape.d, k_stride_now, ty, tx,
                              static_cast<float*>(args.dk) + shared.k);
    join_and_store<D, Groups>(dv, values + Room::kRowsTile, group, thread, k_begin, place.lk,
                              shape.d, k_stride_now, ty, tx,
                              static_cast<float*>(args.dv) + shared.k);
  }
}

template <int D, int Groups, int Copies, int Matrices>
bool try_run(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  constexpr int kBytes = Layout<D, Groups, Copies, Matrices>::kBytes;
  if (kBytes > most_shared_memory()) return false;
  const auto kernel = backward_kernel<D, Groups, Copies, Matrices>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(args.shape.sequences.capacity * parts),
                  static_cast<unsigned>(args.shape.kv_heads));
  kernel<<<grid, kGroup * Groups, kBytes, on>>>(args, parts);
  return true;
}

}  // namespace

void differentiate_float(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  if (args.shape.d <= 32) {
    try_run<32, 2, 1, 1>(args, parts, on);
  } else if (args.shape.d <= 64) {
    if (!try_run<64, 2, 2, 2>(args, parts, on)) try_run<64, 1, 1, 1>(args, parts, on);
  } else {
    if (!try_run<128, 2, 1, 1>(args, parts, on)) try_run<128, 1, 1, 1>(args, parts, on);
  }
}

}  // namespace lathe::engine::cuda
