// Attention in float: a block has 64 queries of one head.
//
// Two groups of threads take every second tile of keys each, with a softmax of their own that
// follows the keys (largest score and sum so far), and are joined at the end: while one group is at
// its exponentials, the other multiplies. Keys are copied ahead while values are multiplied, and
// the other way round.

#include "lathe/engine/cuda/kernels/attention_float.cuh"

namespace lathe::engine::cuda {
namespace {

template <int D, int Groups>
constexpr int kBytes =
    static_cast<int>(sizeof(float)) * (kTile * D + Groups * (2 * kTile * D + kTile * kTile));

template <int D, int Groups>
__global__ void __launch_bounds__(kGroup* Groups) forward_kernel(AttentionArgs args) {
  extern __shared__ float4 room[];
  float* const queries = reinterpret_cast<float*>(room);
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  const int thread = static_cast<int>(threadIdx.x) % kGroup;
  float* const keys = queries + kTile * D + group * (2 * kTile * D + kTile * kTile);
  float* const values = keys + kTile * D;
  float* const weights = values + kTile * D;

  const AttentionShape& shape = args.shape;
  clear_rows(static_cast<float*>(args.y), shape.queries,
             static_cast<std::int64_t>(shape.heads) * shape.d,
             static_cast<std::int64_t>(shape.heads) * shape.d);
  const Place place = find_place(shape, blockIdx.x, false);
  if (place.sequence < 0) return;
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const float* const k = static_cast<const float*>(shape.k) + at.k;
  const float* const v = static_cast<const float*>(shape.v) + at.k;
  const int ty = thread / kLanes, tx = thread % kLanes;
  const int tiles = tiles_of(keys_seen(shape, place, place.begin + kTile));
  const KeptKeys kept(shape, place, head);
  const float scale = shape.scale * kLog2E;
  const auto load = [&](const float* rows, int tile, float* to) {
    if (tile < tiles)
      load_rows<D>(rows, at.k_stride, tile * kTile, place.lk, shape.d, thread, kGroup, to);
    close_copies();
  };
  const auto meet_group = [&] { meet<kGroup>(1 + group); };

  load_rows<D>(static_cast<const float*>(shape.q) + at.q, at.q_stride, place.begin, place.lq,
               shape.d, static_cast<int>(threadIdx.x), kGroup * Groups, queries);
  load(k, group, keys);
  load(v, group, values);
  await_copies<1>();
  __syncthreads();

  Sums<D> sums = {};
  float highest[kRows], total[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    highest[i] = -INFINITY;
    total[i] = 0;
  }
  for (int tile = group; tile < tiles; tile += Groups) {
    const int k_begin = tile * kTile;
    await_copies<1>();
    meet_group();
    Scores score;
    multiply_rows<D>(queries, keys, ty, tx, score);
    meet_group();
    load(k, tile + Groups, keys);
    const std::uint32_t bits =
        shape.threshold != 0 ? draw_kept(kept, place.begin, k_begin, ty, tx) : 0;
    if (is_plain(shape, place, place.begin, k_begin, kTile)) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) score[i][j] *= scale;
    } else {
      for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kColumns; ++j) {
          const int query = place.begin + ty * kRows + i, key = k_begin + tx * kColumns + j;
          score[i][j] = key >= place.lk                       ? -INFINITY
                        : is_masked(shape, place, query, key) ? kMasked
                                                              : score[i][j] * scale;
        }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float most = score[i][0];
#pragma unroll
      for (int j = 1; j < kColumns; ++j) most = fmaxf(most, score[i][j]);
      most = fmaxf(highest[i], join_row(most, [](float a, float b) { return fmaxf(a, b); }));
      const float shrink = power_of_two(highest[i] - most);
      highest[i] = most;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float weight = power_of_two(score[i][j] - most);
        sum += weight;
        score[i][j] = weight;
        if (shape.threshold != 0)
          score[i][j] = (bits >> (4 * i + j) & 1u) != 0 ? weight * shape.dropout_scale : 0.0f;
      }
      total[i] = fmaf(total[i], shrink, sum);  // of this thread's columns
#pragma unroll
      for (int c = 0; c < Columns<D>::kCount; ++c) sums[i][c] *= shrink;
    }
    store_scores(score, ty, tx, weights);
    await_copies<1>();
    meet_group();
    add_weighted<D>(weights, values, min(kTile, place.lk - k_begin), ty, tx, sums);
    meet_group();
    load(v, tile + Groups, values);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) total[i] = join_row(total[i], Add());

  if constexpr (Groups > 1) {
    // The second group hands over what it has, each thread to its like in the first.
    float* const handed = queries + kTile * D;
    __syncthreads();
    const auto each = [&](const auto& visit) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        float* const numbers = handed + i * (Columns<D>::kCount + 2) * kGroup + thread;
        visit(i, numbers);
      }
    };
    if (group == 1) {
      each([&](int i, float* numbers) {
        numbers[0] = highest[i];
        numbers[kGroup] = total[i];
#pragma unroll
        for (int c = 0; c < Columns<D>::kCount; ++c) numbers[(2 + c) * kGroup] = sums[i][c];
      });
    }
    __syncthreads();
    if (group == 1) return;
    if (tiles > 1) {
      each([&](int i, const float* numbers) {
        const float most = fmaxf(highest[i], numbers[0]);
        const float mine = power_of_two(highest[i] - most);
        const float others = power_of_two(numbers[0] - most);
        highest[i] = most;
        total[i] = fmaf(total[i], mine, numbers[kGroup] * others);
#pragma unroll
        for (int c = 0; c < Columns<D>::kCount; ++c)
          sums[i][c] = fmaf(sums[i][c], mine, numbers[(2 + c) * kGroup] * others);
      });
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float inverse = inverse_of(total[i]);
#pragma unroll
    for (int c = 0; c < Columns<D>::kCount; ++c) sums[i][c] *= inverse;
    const int query = place.begin + ty * kRows + i;
    if (args.statistics != nullptr && tx == 0 && query < place.lq) {
      float* const numbers = args.statistics + statistics_place(shape, place, head, query);
      numbers[0] = highest[i];
      numbers[1] = inverse;
    }
  }
  store_rows<D>(sums, place.begin, place.lq, shape.d, at.y_stride, ty, tx,
                static_cast<float*>(args.y) + at.y);
}

template <int D, int Groups>
void run(const AttentionArgs& args, cudaStream_t on) {
  cudaFuncSetAttribute(forward_kernel<D, Groups>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kBytes<D, Groups>);
  const dim3 grid(most_tiles(args.shape, false), static_cast<unsigned>(args.shape.heads));
  forward_kernel<D, Groups><<<grid, kGroup * Groups, kBytes<D, Groups>, on>>>(args);
}

template <int D>
void run(const AttentionArgs& args, cudaStream_t on) {
  if (kBytes<D, 2> <= most_shared_memory())
    run<D, 2>(args, on);
  else
    run<D, 1>(args, on);
}

}  // namespace

void attend_float(const AttentionArgs& args, cudaStream_t on) {
  if (args.shape.d <= 32)
    run<32>(args, on);
  else if (args.shape.d <= 64)
    run<64>(args, on);
  else
    run<128>(args, on);
}

}  // namespace lathe::engine::cuda
