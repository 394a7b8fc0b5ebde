// The gradient of attention in float: a block has 64 keys of one head at a time, and goes through
// the queries that see them, groups of threads taking tiles of queries in turn.
//
// Weights come back from the forward pass's statistics, so a tile costs five products, and the two
// halves of a group share them: one half makes the scores and dv, the other dout by values and dk,
// and each half of dq's rows. Sums for keys stay in registers and are joined at the end. Those for
// queries go to device memory: the block adds all its tiles of keys to one part of dq, which
// belongs to no other block, so that the order of additions is always the same.

#include "lathe/engine/cuda/kernels/attention_float.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kLanes = 8, kHalf = 64, kGroup = 2 * kHalf;
constexpr int kColumns = kTile / kLanes;
constexpr int kBitWords = 128;  // of a group: which weights of a tile dropout keeps

template <int D, int Groups, int Copies>
struct Layout {
  static constexpr int kRowsTile = kTile * D, kScoresTile = kTile * kTile;
  static constexpr int kGroupFloats = 2 * Copies * kRowsTile + 2 * kScoresTile + kBitWords;
  static constexpr int kBytes =
      static_cast<int>(sizeof(float)) * (2 * kRowsTile + Groups * kGroupFloats);
};

// A word has the bits of four rows and eight neighbouring keys; a thread draws one of those that
// its half needs and its neighbour the other.
__device__ void draw_bits(const KeptKeys& kept, int q_begin, int k_begin, int half, int ty, int tx,
                          std::uint32_t* words) {
  const int side = tx % 2;
  std::uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    word |= kept.bits(q_begin + ty * kRows + half * 4 + i, k_begin + tx * 4 + side * kTile / 2)
            << (8 * i);
  words[(half * 2 + side) * 32 + ty * 4 + tx / 2] = word;
}
__device__ bool is_kept(const std::uint32_t (&words)[4], int i, int j, int tx) {
  return (words[i / 4 * 2 + j / 4] >> (i % 4 * 8 + tx % 2 * 4 + j % 4) & 1u) != 0;
}

// Which of a thread's scores do not count as they are: bit 8 i + j. A loop, because few tiles are
// at an edge and registers are short.
__device__ std::uint64_t hidden_scores(const AttentionShape& shape, const Place& place, int q_begin,
                                       int k_begin, int ty, int tx) {
  std::uint64_t hidden = 0;
#pragma unroll 1
  for (int bit = 0; bit < kRows * kColumns; ++bit) {
    const int query = q_begin + ty * kRows + bit / kColumns;
    const int key = k_begin + column_of<kLanes>(tx, bit % kColumns);
    if (key >= place.lk || is_masked(shape, place, query, key)) hidden |= std::uint64_t{1} << bit;
  }
  return hidden;
}

template <int D, int Groups, int Copies>
__global__ void __launch_bounds__(kGroup* Groups)
    backward_kernel(AttentionGradientArgs args, int parts) {
  using Room = Layout<D, Groups, Copies>;
  extern __shared__ float4 room[];
  float* const keys = reinterpret_cast<float*>(room);
  float* const values = keys + Room::kRowsTile;
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  const int in_group = static_cast<int>(threadIdx.x) % kGroup;
  const int half = in_group / kHalf, thread = in_group % kHalf;
  float* const own = values + Room::kRowsTile + group * Room::kGroupFloats;
  float* const weights = own + 2 * Copies * Room::kRowsTile;
  float* const dscores = weights + Room::kScoresTile;
  auto* const bits = reinterpret_cast<std::uint32_t*>(dscores + Room::kScoresTile);

  const AttentionShape& shape = args.shape;
  const int ty = thread / kLanes, tx = thread % kLanes;
  const std::int64_t k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t k_stride = shape.k_stride != 0 ? shape.k_stride : k_width;
  const auto clear = [&] {
    clear_rows(static_cast<float*>(args.dk), shape.keys, k_stride, k_width);
    clear_rows(static_cast<float*>(args.dv), shape.keys, k_stride, k_width);
  };
  const int sequence = static_cast<int>(blockIdx.x) / parts;
  const int part = static_cast<int>(blockIdx.x) % parts;
  if (sequence >= real_size(shape.sequences)) return clear();
  const Place place = sequence_at(shape, sequence);
  const int heads_each = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * heads_each;
  const float scale = shape.scale * kLog2E;
  const auto meet_group = [&] { meet<kGroup, 1, Groups>(group); };
  const auto meet_half = [&] { meet<kHalf, 1 + Groups, Groups>(group); };

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
    Part<D, kLanes> sums = {};  // the first half's of dv, the second's of dk
    for (int head = first_head; head < first_head + heads_each; ++head) {
      const HeadPlace at = head_place(shape, place, head);
      float* const dq = part_of(args, part) + at.y;
      const KeptKeys kept(shape, place, head);
      const int first = first_query_seeing(shape, k_begin) + group * kTile;
      const auto load = [&](int q_begin, int copy) {
        float* const to = own + copy * 2 * Room::kRowsTile;
        if (q_begin < place.lq) {
          load_rows<D>(static_cast<const float*>(shape.q) + at.q, at.q_stride, q_begin, place.lq,
                       shape.d, in_group, kGroup, to);
          load_rows<D>(static_cast<const float*>(args.dout) + at.y, at.y_stride, q_begin, place.lq,
                       shape.d, in_group, kGroup, to + Room::kRowsTile);
        }
        close_copies();
      };
      load(first, 0);
      int copy = 0;
      for (int q_begin = first; q_begin < place.lq; q_begin += Groups * kTile) {
        const float* const queries = own + copy * 2 * Room::kRowsTile;
        const float* const douts = queries + Room::kRowsTile;
        if constexpr (Copies > 1) {
          load(q_begin + Groups * kTile, 1 - copy);  // its last readers have met
          copy = 1 - copy;
          await_copies<1>();
        } else {
          await_copies<0>();
        }
        // Asked for before the product, there after it.
        const QueryFacts* const facts = facts_of(args) + place.q_start * shape.heads + head;
        float fact[kRows];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const int query = min(q_begin + ty * kRows + i, place.lq - 1);
          fact[i] = half == 0 ? facts[query * shape.heads].sum : facts[query * shape.heads].mean;
        }
        if (shape.threshold != 0) {
          draw_bits(kept, q_begin, k_begin, half, ty, tx, bits);
          meet_group();  // once more, for racecheck: see the forward kernel's end
        }
        meet_group();
        // What a product does not need is read after it: registers are short.
        std::uint32_t words[4] = {};
        const auto read_words = [&] {
          if (shape.threshold != 0)
#pragma unroll
            for (int i = 0; i < 4; ++i) words[i] = bits[i * 32 + ty * 4 + tx / 2];
        };
        const auto each_hidden = [&](auto visit) {
          if (is_plain(shape, place, q_begin, k_begin, kTile)) return;
          const std::uint64_t hidden = hidden_scores(shape, place, q_begin, k_begin, ty, tx);
#pragma unroll
          for (int i = 0; i < kRows; ++i)
#pragma unroll
            for (int j = 0; j < kColumns; ++j)
              if ((hidden >> (i * kColumns + j) & 1u) != 0) visit(i, j);
        };
        const int rows = min(kTile, place.lq - q_begin);
        Part<kTile, kLanes> score;
        if (half == 0) {
          multiply_rows<D, kLanes>(queries, keys, ty, tx, score);
#pragma unroll
          for (int i = 0; i < kRows; ++i)
#pragma unroll
            for (int j = 0; j < kColumns; ++j) score[i][j] *= scale;
          each_hidden([&](int i, int j) {
            const int query = min(q_begin + ty * kRows + i, place.lq - 1);
            score[i][j] = facts[query * shape.heads].masked;
          });
#pragma unroll
          for (int i = 0; i < kRows; ++i)
#pragma unroll
            for (int j = 0; j < kColumns; ++j) score[i][j] = power_of_two(score[i][j] - fact[i]);
          store_part<kTile, kLanes>(score, ty, tx, dscores);
          read_words();
          if (shape.threshold != 0)
#pragma unroll
            for (int i = 0; i < kRows; ++i)
#pragma unroll
              for (int j = 0; j < kColumns; ++j)
                score[i][j] = is_kept(words, i, j, tx) ? score[i][j] * shape.dropout_scale : 0.0f;
          store_part<kTile, kLanes>(score, ty, tx, weights);
          meet_group();
          add_weighted_by_columns<D, kLanes>(weights, douts, rows, ty, tx, sums);
        } else {
          multiply_rows<D, kLanes>(douts, values, ty, tx, score);
          meet_group();  // the weights are there
          read_words();
#pragma unroll
          for (int i = 0; i < kRows; ++i)
#pragma unroll
            for (int quarter = 0; quarter < kColumns / 4; ++quarter) {
              const float4 four = load_chunk<kTile>(dscores, ty * kRows + i, tx + quarter * kLanes);
              const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
              for (int e = 0; e < 4; ++e) {
                const int j = quarter * 4 + e;
                float factor = shape.scale;
                if (shape.threshold != 0)
                  factor = is_kept(words, i, j, tx) ? shape.scale * shape.dropout_scale : 0.0f;
                score[i][j] = weight[e] * fmaf(score[i][j], factor, -fact[i]);
              }
            }
          // A masked key weighs nothing, or its query sees no key and its weights stay as they are.
          each_hidden([&](int i, int j) { score[i][j] = 0; });
          store_part<kTile, kLanes>(score, ty, tx, dscores);
          meet_half();
          add_weighted_by_columns<D, kLanes>(dscores, queries, rows, ty, tx, sums);
        }
        meet_group();  // the gradients of the scores are there
        Part<D, kLanes, kRows / 2> query_sums = {};
        const int first_row = half * kTile / 2 + ty * (kRows / 2);
        add_weighted<D, kLanes, kRows / 2>(dscores, keys, min(kTile, place.lk - k_begin), first_row,
                                           tx, query_sums);
        // What is there already is read all at once, or each read would wait for the write before.
        const bool is_first = k_begin == part * kTile;
        const bool is_even = shape.d % 4 == 0;
        if (!is_first) {
#pragma unroll
          for (int i = 0; i < kRows / 2; ++i)
#pragma unroll
            for (int c = 0; c < D / kLanes / 4; ++c) {
              const int row = q_begin + first_row + i, column = (tx + c * kLanes) * 4;
              if (row >= place.lq || column >= shape.d) continue;
              const float* const from = dq + row * at.y_stride + column;
              float* const sum = &query_sums[i][c * 4];
              if (is_even) {
                const float4 before = *reinterpret_cast<const float4*>(from);
                sum[0] += before.x;
                sum[1] += before.y;
                sum[2] += before.z;
                sum[3] += before.w;
              } else {
                for (int e = 0; e < 4; ++e)
                  if (column + e < shape.d) sum[e] += from[e];
              }
            }
        }
#pragma unroll
        for (int i = 0; i < kRows / 2; ++i)
#pragma unroll
          for (int c = 0; c < D / kLanes / 4; ++c) {
            const int row = q_begin + first_row + i, column = (tx + c * kLanes) * 4;
            if (row < place.lq && column < shape.d)
              store_four(dq + row * at.y_stride + column, &query_sums[i][c * 4], shape.d - column);
          }
        meet_group();
        if constexpr (Copies == 1) load(q_begin + Groups * kTile, 0);
      }
    }
    // The second group hands over its sums, where the first group's queries were.
    if constexpr (Groups > 1) {
      float* const handed = values + Room::kRowsTile + in_group;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int c = 0; c < D / kLanes; ++c)
          if (group == 1) handed[(i * (D / kLanes) + c) * kGroup] = sums[i][c];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int c = 0; c < D / kLanes; ++c)
          if (group == 0) sums[i][c] += handed[(i * (D / kLanes) + c) * kGroup];
    }
    if (group != 0) continue;
    float* const result = static_cast<float*>(half == 0 ? args.dv : args.dk) + shared.k;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = k_begin + ty * kRows + i;
#pragma unroll
      for (int c = 0; c < D / kLanes / 4; ++c) {
        const int column = (tx + c * kLanes) * 4;
        if (row < place.lk && column < shape.d)
          store_four(result + row * k_stride + column, &sums[i][c * 4], shape.d - column);
      }
    }
  }
  clear();
}

template <int D, int Groups, int Copies>
bool try_run(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  constexpr int kBytes = Layout<D, Groups, Copies>::kBytes;
  if (kBytes > most_shared_memory()) return false;
  const auto kernel = backward_kernel<D, Groups, Copies>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(args.shape.sequences.capacity * parts),
                  static_cast<unsigned>(args.shape.kv_heads));
  kernel<<<grid, kGroup * Groups, kBytes, on>>>(args, parts);
  return true;
}

}  // namespace

void differentiate_float(const AttentionGradientArgs& args, int parts, cudaStream_t on) {
  // Queries are copied ahead where there is room for it.
  if (args.shape.d <= 32)
    try_run<32, 1, 2>(args, parts, on);
  else if (args.shape.d <= 64)
    try_run<64, 2, 2>(args, parts, on) || try_run<64, 1, 1>(args, parts, on);
  else
    try_run<128, 1, 2>(args, parts, on) || try_run<128, 1, 1>(args, parts, on);
}

}  // namespace lathe::engine::cuda
