// Attention in float: a block has 64 queries of one head.
//
// Groups of threads take tiles of keys in turn, with a softmax of their own that follows the keys
// (largest score and sum so far), and are joined at the end: while one group is at its
// exponentials, the others multiply. Keys are copied ahead while values are multiplied, and the
// other way round.

#include "lathe/engine/cuda/kernels/attention_float.cuh"

namespace lathe::engine::cuda {
namespace {

template <int D>
constexpr int kGroupFloats = 2 * kTile * D + kTile * kTile;
// Queries, the groups' keys, values and weights, and two numbers of each row of each group.
template <int D, int Groups>
constexpr int kBytes =
    static_cast<int>(sizeof(float)) * (kTile * D + Groups * (kGroupFloats<D> + 2 * kTile));

// Which of a thread's scores dropout keeps. Two neighbours share blocks of eight keys: with eight
// columns each draws one of the two blocks for all rows, with four one block for half of the rows.
template <int Lanes>
struct KeptScores {
  static constexpr int kWords = kTile / Lanes / 4;
  std::uint32_t words[2];  // four rows each; with eight columns a second pair for the neighbour's
  std::uint32_t others[2];
  int tx;

  __device__ KeptScores(const KeptKeys& kept, int q_begin, int k_begin, int ty, int of_tx)
      : words{}, others{}, tx(of_tx) {
    if (kept.threshold == 0) return;
    const int side = tx % 2;
#pragma unroll
    for (int i = 0; i < 4 * kWords; ++i) {
      const int row = kWords == 2 ? i : side * 4 + i;
      const int key = tx * 4 + (kWords == 2 ? side * kTile / 2 : 0);
      words[i / 4] |= kept.bits(q_begin + ty * kRows + row, k_begin + key) << (i % 4 * 8);
    }
#pragma unroll
    for (int word = 0; word < kWords; ++word)
      others[word] = __shfl_xor_sync(kAllLanes, words[word], 1);
  }
  __device__ bool keeps(int i, int j) const {
    const int side = tx % 2;
    const bool is_own = kWords == 2 ? j / 4 == side : i / 4 == side;
    const int word = kWords == 2 ? i / 4 : 0;
    const std::uint32_t from = is_own ? words[word] : others[word];
    return (from >> (i % 4 * 8 + side * 4 + j % 4) & 1u) != 0;
  }
};

// Which of a thread's scores are of masked keys and of none at all: a bit for each. A loop, because
// few tiles are at an edge and code is long.
struct EdgeScores {
  std::uint64_t masked = 0, beyond = 0;
};
template <int Lanes>
__device__ EdgeScores edge_scores(const AttentionShape& shape, const Place& place, int k_begin,
                                  int ty, int tx) {
  constexpr int kColumns = kTile / Lanes;
  EdgeScores edge;
#pragma unroll 1
  for (int i = 0; i < kRows * kColumns; ++i) {
    const int query = place.begin + ty * kRows + i / kColumns;
    const int key = k_begin + column_of<Lanes>(tx, i % kColumns);
    if (key >= place.lk)
      edge.beyond |= std::uint64_t{1} << i;
    else if (is_masked(shape, place, query, key))
      edge.masked |= std::uint64_t{1} << i;
  }
  return edge;
}

template <int D, int Lanes, int Groups>
__global__ void __launch_bounds__(8 * Lanes * Groups) forward_kernel(AttentionArgs args) {
  constexpr int kGroup = 8 * Lanes, kColumns = kTile / Lanes, kCount = D / Lanes;
  extern __shared__ float4 room[];
  float* const queries = reinterpret_cast<float*>(room);
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  const int thread = static_cast<int>(threadIdx.x) % kGroup;
  float* const keys = queries + kTile * D + group * kGroupFloats<D>;
  float* const values = keys + kTile * D;
  float* const weights = values + kTile * D;

  const AttentionShape& shape = args.shape;
  const auto clear = [&] {
    const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
    clear_rows(static_cast<float*>(args.y), shape.queries, width, width);
  };
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), false);
  if (place.sequence < 0) return clear();
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const float* const k = static_cast<const float*>(shape.k) + at.k;
  const float* const v = static_cast<const float*>(shape.v) + at.k;
  const int ty = thread / Lanes, tx = thread % Lanes;
  const int tiles = tiles_of(keys_seen(shape, place, place.begin + kTile));
  const KeptKeys kept(shape, place, head);
  const float scale = shape.scale * kLog2E;
  const auto load = [&](const float* rows, int tile, float* to) {
    if (tile < tiles)
      load_rows<D>(rows, at.k_stride, tile * kTile, place.lk, shape.d, thread, kGroup, to);
    close_copies();
  };
  const auto meet_group = [&] { meet<kGroup, 1, Groups>(group); };

  load_rows<D>(static_cast<const float*>(shape.q) + at.q, at.q_stride, place.begin, place.lq,
               shape.d, static_cast<int>(threadIdx.x), kGroup * Groups, queries);
  load(k, group, keys);
  load(v, group, values);
  await_copies<1>();
  __syncthreads();

  Part<D, Lanes> sums = {};
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
    Part<kTile, Lanes> score;
    multiply_rows<D, Lanes>(queries, keys, ty, tx, score);
    meet_group();
    load(k, tile + Groups, keys);
    const KeptScores<Lanes> keeps(kept, place.begin, k_begin, ty, tx);
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) score[i][j] *= scale;
    if (!is_plain(shape, place, place.begin, k_begin, kTile)) {
      const EdgeScores edge = edge_scores<Lanes>(shape, place, k_begin, ty, tx);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          const std::uint64_t bit = std::uint64_t{1} << (i * kColumns + j);
          if ((edge.masked & bit) != 0) score[i][j] = kMasked;
          if ((edge.beyond & bit) != 0) score[i][j] = -INFINITY;
        }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float most = score[i][0];
#pragma unroll
      for (int j = 1; j < kColumns; ++j) most = fmaxf(most, score[i][j]);
#pragma unroll
      for (int distance = Lanes / 2; distance > 0; distance /= 2)
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
      most = fmaxf(highest[i], most);
      const float shrink = power_of_two(highest[i] - most);
      highest[i] = most;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float weight = power_of_two(score[i][j] - most);
        sum += weight;
        score[i][j] = weight;
        if (shape.threshold != 0)
          score[i][j] = keeps.keeps(i, j) ? weight * shape.dropout_scale : 0.0f;
      }
      total[i] = fmaf(total[i], shrink, sum);  // of this thread's columns
#pragma unroll
      for (int c = 0; c < kCount; ++c) sums[i][c] *= shrink;
    }
    store_part<kTile, Lanes>(score, ty, tx, weights);
    await_copies<1>();
    meet_group();
    add_weighted<D, Lanes, kRows>(weights, values, min(kTile, place.lk - k_begin), ty * kRows, tx,
                                  sums);
    meet_group();
    load(v, tile + Groups, values);
  }

  // Each group leaves its sums where its keys were, and all threads join them.
  store_part<D, Lanes>(sums, ty, tx, keys);
  // Lane i has row i's numbers, or one of them.
  float own[2] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2)
      total[i] += __shfl_xor_sync(kAllLanes, total[i], distance);
    if (tx % kRows == i) {
      own[0] = highest[i];
      own[1] = total[i];
    }
  }
  float* const numbers = queries + kTile * D + Groups * kGroupFloats<D>;
  float* const to = numbers + 2 * (group * kTile + ty * kRows + tx % kRows);
  if constexpr (Lanes == kRows)
    *reinterpret_cast<float2*>(to) = make_float2(own[0], own[1]);
  else
    to[tx / kRows] = tx < kRows ? own[0] : own[1];
  __syncthreads();
  __syncthreads();  // racecheck sees no order between a write and reads one barrier later
  const int groups = min(Groups, max(tiles, 1));
  for (int i = static_cast<int>(threadIdx.x); i < kTile * (D / 4); i += kGroup * Groups) {
    const int row = i / (D / 4), chunk = i % (D / 4), query = place.begin + row;
    if (query >= place.lq || chunk * 4 >= shape.d) continue;
    const float* const first = queries + kTile * D;  // the first group's sums
    const float* const of_row = numbers + 2 * row;
    float most = -INFINITY, all = 0, y[4] = {};
    for (int g = 0; g < groups; ++g) most = fmaxf(most, of_row[2 * g * kTile]);
    for (int g = 0; g < groups; ++g) {
      const float factor = power_of_two(of_row[2 * g * kTile] - most);
      all = fmaf(of_row[2 * g * kTile + 1], factor, all);
      const float4 part = load_chunk<D>(first + g * kGroupFloats<D>, row, chunk);
      y[0] = fmaf(part.x, factor, y[0]);
      y[1] = fmaf(part.y, factor, y[1]);
      y[2] = fmaf(part.z, factor, y[2]);
      y[3] = fmaf(part.w, factor, y[3]);
    }
    const float inverse = inverse_of(all);
#pragma unroll
    for (int e = 0; e < 4; ++e) y[e] *= inverse;
    store_four(static_cast<float*>(args.y) + at.y + query * at.y_stride + chunk * 4, y,
               shape.d - chunk * 4);
    if (chunk == 0 && args.statistics != nullptr) {
      float* const kept_numbers = args.statistics + statistics_place(shape, place, head, query);
      kept_numbers[0] = most;
      kept_numbers[1] = inverse;
    }
  }
  clear();
}

template <int D, int Lanes, int Groups>
bool try_run(const AttentionArgs& args, cudaStream_t on) {
  if (kBytes<D, Groups> > most_shared_memory()) return false;
  const auto kernel = forward_kernel<D, Lanes, Groups>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes<D, Groups>);
  const dim3 grid(most_tiles(args.shape, false), static_cast<unsigned>(args.shape.heads));
  kernel<<<grid, 8 * Lanes * Groups, kBytes<D, Groups>, on>>>(args);
  return true;
}

}  // namespace

void attend_float(const AttentionArgs& args, cudaStream_t on) {
  // Blocks as large as shared memory allows, and one group where it is small.
  if (args.shape.d <= 32)
    try_run<32, 8, 2>(args, on);
  else if (args.shape.d <= 64)
    try_run<64, 8, 4>(args, on) || try_run<64, 8, 1>(args, on);
  else
    try_run<128, 16, 2>(args, on) || try_run<128, 16, 1>(args, on);
}

}  // namespace lathe::engine::cuda
