// Attention and its gradient in tiles of 64 queries by 64 keys, one head of one sequence at a time.
//
// A block of 256 threads holds a tile of scores in registers: thread (ty, tx) of 16 x 16 has
// queries 4 ty + i and keys tx + 16 j. The softmax is taken as keys come along (largest score and
// sum so far), so that no score is ever in device memory. The gradient knows neither, so its first
// kernel goes through the forward pass again and keeps three numbers a query; then one kernel goes
// over keys for dk and dv, and one over queries for dq: nothing is added by two blocks.
//
// Which sequence and tile a block has is found from the offsets on the device, because a captured
// graph serves all batches of its size. Masked scores are very low numbers rather than minus
// infinity: a query that sees no key then weighs all keys of its sequence alike, as defined.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kSide = 16;             // threads along each side of a tile
constexpr int kEach = kTile / kSide;  // rows and columns of a thread
constexpr int kKeysOfBits = 8;        // that one block of random bits decides
constexpr float kMasked = -1e30f;
constexpr float kLeastScoreGradient = 0x1p-100f;
constexpr int kScoreStride = kTile + 4;

// Rows are padded by four floats, which spreads the rows that a quarter of a warp reads over all
// banks.
template <int D>
constexpr int kRowStride = D + 4;

// One tile: its sequence, where that lies among the rows of q and k, and its first row there.
struct Place {
  int sequence;  // -1: none
  std::int64_t q_start, k_start;
  int lq, lk, begin;
};

__device__ int tiles_of(int length) {
  return (length + kTile - 1) / kTile;
}

// The tile number `index`, counted over the queries of all sequences or over their keys. Every
// thread of the block calls it.
__device__ Place find_place(const AttentionShape& shape, std::int64_t index, bool by_keys) {
  __shared__ Place found;
  if (threadIdx.x == 0) found.sequence = -1;
  __syncthreads();
  const auto sequences = static_cast<int>(real_size(shape.sequences));
  if (shape.offsets.data == nullptr) {
    if (threadIdx.x == 0) {
      const auto lq = static_cast<int>(shape.lq), lk = static_cast<int>(shape.lk);
      const int per = tiles_of(by_keys ? lk : lq);
      const auto s = static_cast<int>(index / per);
      if (s < sequences)
        found = {s, s * shape.lq, s * shape.lk, lq, lk, static_cast<int>(index % per) * kTile};
    }
  } else if (threadIdx.x < kWarp) {
    const int lane = static_cast<int>(threadIdx.x);
    const std::int64_t tokens = real_size(shape.keys);
    std::int64_t before = 0;
    for (int base = 0; base < sequences; base += kWarp) {
      const int s = base + lane;
      std::int64_t begin = 0, end = 0;
      if (s < sequences) {
        begin = integer_at(shape.offsets, s);
        end = integer_at(shape.offsets, s + 1);
        if (begin < 0 || end < begin || end > tokens) {
          report(shape.fault);
          begin = end = 0;
        }
      }
      const auto length = static_cast<int>(end - begin);
      const bool asks_once = shape.only_first && !by_keys;
      const int tiles = asks_once ? (s < sequences ? 1 : 0) : tiles_of(length);
      int up_to = tiles;  // this lane's included
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const int other = __shfl_up_sync(kAllLanes, up_to, distance);
        if (lane >= distance) up_to += other;
      }
      const std::int64_t last = before + up_to, first = last - tiles;
      if (index >= first && index < last)
        found = {s,      shape.only_first ? s : begin,
                 begin,  shape.only_first ? 1 : length,
                 length, static_cast<int>(index - first) * kTile};
      before += __shfl_sync(kAllLanes, up_to, kWarp - 1);
      if (index < before) break;
    }
  }
  __syncthreads();
  return found;
}

// Rows [begin, begin + 64) of one head into shared memory, zeros where there are none.
template <int D>
__device__ void load_rows(const float* rows, std::int64_t width, int begin, int length, int d,
                          float* tile) {
  if (d % 4 == 0) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * (D / 4); i += kThreads) {
      const int row = i / (D / 4), column = i % (D / 4) * 4;
      float4 value = make_float4(0, 0, 0, 0);
      if (begin + row < length && column < d)
        value = *reinterpret_cast<const float4*>(rows + (begin + row) * width + column);
      *reinterpret_cast<float4*>(tile + row * kRowStride<D> + column) = value;
    }
    return;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kTile * D; i += kThreads) {
    const int row = i / D, column = i % D;
    tile[row * kRowStride<D> + column] =
        begin + row < length && column < d ? rows[(begin + row) * width + column] : 0.0f;
  }
}

// product[i][j] = dot(a[4 ty + i], b[tx + 16 j]).
template <int D>
__device__ void multiply_rows(const float* a, const float* b, int ty, int tx,
                              float (&product)[kEach][kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) product[i][j] = 0;
#pragma unroll 4
  for (int c = 0; c < D; c += 4) {
    float4 left[kEach], right[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      left[i] = *reinterpret_cast<const float4*>(a + (ty * kEach + i) * kRowStride<D> + c);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      right[j] = *reinterpret_cast<const float4*>(b + (tx + kSide * j) * kRowStride<D> + c);
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        product[i][j] = fmaf(left[i].x, right[j].x, product[i][j]);
        product[i][j] = fmaf(left[i].y, right[j].y, product[i][j]);
        product[i][j] = fmaf(left[i].z, right[j].z, product[i][j]);
        product[i][j] = fmaf(left[i].w, right[j].w, product[i][j]);
      }
  }
}

// A thread's columns of a result of D columns: `kGroups` runs of `kRun` side by side.
template <int D>
struct Columns {
  static constexpr int kCount = D / kSide;
  static constexpr int kRun = kCount < 4 ? kCount : 4;
  static constexpr int kGroups = kCount / kRun;
  __device__ static int at(int tx, int group) { return group * kSide * kRun + tx * kRun; }
};

template <int D>
__device__ void load_run(const float* from, float (&run)[Columns<D>::kRun]) {
  if constexpr (Columns<D>::kRun == 4) {
    const float4 value = *reinterpret_cast<const float4*>(from);
    run[0] = value.x;
    run[1] = value.y;
    run[2] = value.z;
    run[3] = value.w;
  } else {
    const float2 value = *reinterpret_cast<const float2*>(from);
    run[0] = value.x;
    run[1] = value.y;
  }
}

template <int D>
using Sums = float[kEach][Columns<D>::kCount];

// sums[i] += sum over n of weights[4 ty + i][n] * rows[n]; weights lie as [64][kScoreStride].
template <int D>
__device__ void add_weighted(const float* weights, const float* rows, int ty, int tx,
                             Sums<D>& sums) {
#pragma unroll 2
  for (int n = 0; n < kTile; n += 4) {
    float4 weight[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      weight[i] = *reinterpret_cast<const float4*>(weights + (ty * kEach + i) * kScoreStride + n);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int group = 0; group < Columns<D>::kGroups; ++group) {
        float run[Columns<D>::kRun];
        load_run<D>(rows + (n + step) * kRowStride<D> + Columns<D>::at(tx, group), run);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const float w = step == 0   ? weight[i].x
                          : step == 1 ? weight[i].y
                          : step == 2 ? weight[i].z
                                      : weight[i].w;
#pragma unroll
          for (int e = 0; e < Columns<D>::kRun; ++e) {
            float& sum = sums[i][group * Columns<D>::kRun + e];
            sum = fmaf(w, run[e], sum);
          }
        }
      }
    }
  }
}

// sums[i] += sum over n of weights[n][4 ty + i] * rows[n]: the same by columns of the weights.
template <int D>
__device__ void add_weighted_by_columns(const float* weights, const float* rows, int ty, int tx,
                                        Sums<D>& sums) {
#pragma unroll 4
  for (int n = 0; n < kTile; ++n) {
    const float4 weight = *reinterpret_cast<const float4*>(weights + n * kScoreStride + ty * kEach);
    const float each[kEach] = {weight.x, weight.y, weight.z, weight.w};
#pragma unroll
    for (int group = 0; group < Columns<D>::kGroups; ++group) {
      float run[Columns<D>::kRun];
      load_run<D>(rows + n * kRowStride<D> + Columns<D>::at(tx, group), run);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int e = 0; e < Columns<D>::kRun; ++e) {
          float& sum = sums[i][group * Columns<D>::kRun + e];
          sum = fmaf(each[i], run[e], sum);
        }
    }
  }
}

// Writes a thread's rows of a result, those below `length`.
template <int D>
__device__ void store_rows(const Sums<D>& sums, int begin, int length, int d, std::int64_t width,
                           int ty, int tx, float* rows) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = begin + ty * kEach + i;
    if (row >= length) continue;
#pragma unroll
    for (int group = 0; group < Columns<D>::kGroups; ++group)
#pragma unroll
      for (int e = 0; e < Columns<D>::kRun; ++e) {
        const int column = Columns<D>::at(tx, group) + e;
        if (column < d) rows[row * width + column] = sums[i][group * Columns<D>::kRun + e];
      }
  }
}

// The sum, or the largest, over the sixteen threads that share a row: half a warp.
template <typename Join>
__device__ float join_row(float value, Join join) {
#pragma unroll
  for (int distance = kSide / 2; distance > 0; distance /= 2)
    value = join(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

// Which weights of a tile dropout keeps, a byte for eight keys of a query.
__device__ void draw_bits(const AttentionShape& shape, const Place& place, int head, int q_begin,
                          int k_begin, std::uint8_t* kept) {
  const ops::DropoutStream stream = stream_of(shape.random, shape.site);
  const auto example = static_cast<std::uint32_t>(integer_at(shape.examples, place.sequence));
  constexpr int kBlocks = kTile / kKeysOfBits;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kBlocks; i += kThreads) {
    const PhiloxCounter bits = ops::attention_dropout_block(
        stream, example, static_cast<std::uint32_t>(head),
        static_cast<std::uint32_t>(q_begin + i / kBlocks),
        static_cast<std::uint32_t>(k_begin / kKeysOfBits + i % kBlocks));
    unsigned mask = 0;
    for (std::uint32_t key = 0; key < kKeysOfBits; ++key)
      mask |= (ops::dropout_bits(bits, key) >= shape.threshold ? 1u : 0u) << key;
    kept[i] = static_cast<std::uint8_t>(mask);
  }
}

__device__ float dropout_factor(const AttentionShape& shape, const std::uint8_t* kept, int row,
                                int column) {
  if (shape.threshold == 0) return 1.0f;
  const unsigned mask = kept[row * (kTile / kKeysOfBits) + column / kKeysOfBits];
  return (mask >> (column % kKeysOfBits) & 1u) != 0 ? shape.dropout_scale : 0.0f;
}

__device__ bool is_masked(const AttentionShape& shape, const Place& place, int query, int key) {
  if (shape.is_causal && key > query) return true;
  return shape.mask.data != nullptr && integer_at(shape.mask, place.k_start + key) == 0;
}

struct Head {
  const float* q;
  const float* k;
  const float* v;
  std::int64_t q_width, k_width, q_place, k_place;
};

__device__ Head head_of(const AttentionShape& shape, const Place& place, int head) {
  Head result{};
  result.q_width = static_cast<std::int64_t>(shape.heads) * shape.d;
  result.k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  result.q_place = place.q_start * result.q_width + static_cast<std::int64_t>(head) * shape.d;
  result.k_place = place.k_start * result.k_width +
                   static_cast<std::int64_t>(head / (shape.heads / shape.kv_heads)) * shape.d;
  result.q = static_cast<const float*>(shape.q) + result.q_place;
  result.k = static_cast<const float*>(shape.k) + result.k_place;
  result.v = static_cast<const float*>(shape.v) + result.k_place;
  return result;
}

// With `dout` it keeps statistics instead of results: for each query the largest score, one over
// the sum, and dot(dout, y).
template <int D>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(AttentionShape shape, float* y, const float* dout, float* statistics) {
  extern __shared__ float4 room[];
  float* const queries = reinterpret_cast<float*>(room);
  float* const keys = queries + kTile * kRowStride<D>;  // then the values
  float* const weights = keys + kTile * kRowStride<D>;
  __shared__ std::uint8_t kept[kTile * kTile / kKeysOfBits];

  const Place place = find_place(shape, blockIdx.x, false);
  if (place.sequence < 0) return;
  const int head = static_cast<int>(blockIdx.y);
  const Head at = head_of(shape, place, head);
  const int tx = static_cast<int>(threadIdx.x) % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  load_rows<D>(at.q, at.q_width, place.begin, place.lq, shape.d, queries);

  Sums<D> sums = {};
  float highest[kEach], total[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    highest[i] = -INFINITY;
    total[i] = 0;
  }
  // Keys after the last query of the tile are seen by none of them, unless one sees nothing at all.
  int keys_end = place.lk;
  if (shape.is_causal && shape.mask.data == nullptr) keys_end = min(keys_end, place.begin + kTile);
  for (int k_begin = 0; k_begin < keys_end; k_begin += kTile) {
    __syncthreads();  // the values of the tile before are read
    load_rows<D>(at.k, at.k_width, k_begin, place.lk, shape.d, keys);
    if (shape.threshold != 0) draw_bits(shape, place, head, place.begin, k_begin, kept);
    __syncthreads();
    float score[kEach][kEach];
    multiply_rows<D>(queries, keys, ty, tx, score);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int query = place.begin + ty * kEach + i;
      float most = -INFINITY;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int key = k_begin + tx + kSide * j;
        if (key >= place.lk)
          score[i][j] = -INFINITY;
        else
          score[i][j] = is_masked(shape, place, query, key) ? kMasked : score[i][j] * shape.scale;
        most = fmaxf(most, score[i][j]);
      }
      most = fmaxf(highest[i], join_row(most, Larger()));
      const float shrink = expf(highest[i] - most);
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const float weight = expf(score[i][j] - most);
        sum += weight;
        weights[(ty * kEach + i) * kScoreStride + tx + kSide * j] =
            weight * dropout_factor(shape, kept, ty * kEach + i, tx + kSide * j);
      }
      total[i] = total[i] * shrink + join_row(sum, Add());
      highest[i] = most;
#pragma unroll
      for (int c = 0; c < Columns<D>::kCount; ++c) sums[i][c] *= shrink;
    }
    __syncthreads();  // keys are read, weights are written
    load_rows<D>(at.v, at.k_width, k_begin, place.lk, shape.d, keys);
    __syncthreads();
    add_weighted<D>(weights, keys, ty, tx, sums);
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float inverse = total[i] > 0 ? 1.0f / total[i] : 0.0f;
    // What is not a number must come out as that.
    const float scale = total[i] == total[i] ? inverse : total[i];
#pragma unroll
    for (int c = 0; c < Columns<D>::kCount; ++c) sums[i][c] *= scale;
    total[i] = scale;
  }
  if (dout == nullptr) {
    store_rows<D>(sums, place.begin, place.lq, shape.d, at.q_width, ty, tx, y + at.q_place);
    return;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int row = place.begin + ty * kEach + i;
    float product = 0;
    if (row < place.lq) {
#pragma unroll
      for (int group = 0; group < Columns<D>::kGroups; ++group)
#pragma unroll
        for (int e = 0; e < Columns<D>::kRun; ++e) {
          const int column = Columns<D>::at(tx, group) + e;
          if (column < shape.d)
            product = fmaf(sums[i][group * Columns<D>::kRun + e],
                           dout[at.q_place + row * at.q_width + column], product);
        }
    }
    product = join_row(product, Add());
    if (row < place.lq && tx == 0) {
      float* const kept_numbers =
          statistics + kAttentionStatistics * ((place.q_start + row) * shape.heads + head);
      kept_numbers[0] = highest[i];
      kept_numbers[1] = total[i];
      kept_numbers[2] = product;
    }
  }
}

// The weights and the gradients of the scores of one tile, in a thread's registers. The tiles of
// queries, dout, keys and values are in shared memory.
template <int D>
__device__ void score_gradients(const AttentionShape& shape, const Place& place, int head,
                                int q_begin, int k_begin, const float* queries, const float* douts,
                                const float* keys, const float* values, const float* statistics,
                                const std::uint8_t* kept, int ty, int tx,
                                float (&weight)[kEach][kEach], float (&dscore)[kEach][kEach]) {
  multiply_rows<D>(queries, keys, ty, tx, weight);
  multiply_rows<D>(douts, values, ty, tx, dscore);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int query = q_begin + ty * kEach + i;
    const bool is_query = query < place.lq;
    const float* const numbers =
        statistics +
        kAttentionStatistics * ((place.q_start + (is_query ? query : 0)) * shape.heads + head);
    const float highest = numbers[0], scale = numbers[1], mean = numbers[2];
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int key = k_begin + tx + kSide * j;
      if (!is_query || key >= place.lk) {
        weight[i][j] = dscore[i][j] = 0;
        continue;
      }
      const bool masked = is_masked(shape, place, query, key);
      const float score = masked ? kMasked : weight[i][j] * shape.scale;
      const float p = expf(score - highest) * scale;
      const float factor = dropout_factor(shape, kept, ty * kEach + i, tx + kSide * j);
      weight[i][j] = p * factor;
      // A masked key weighs nothing, or its query sees no key and its weights stay as they are.
      const float ds = masked ? 0.0f : shape.scale * p * (dscore[i][j] * factor - mean);
      dscore[i][j] = fabsf(ds) < kLeastScoreGradient ? 0.0f : ds;
    }
  }
}

__device__ void store_tile(const float (&numbers)[kEach][kEach], int ty, int tx, float* tile) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      tile[(ty * kEach + i) * kScoreStride + tx + kSide * j] = numbers[i][j];
}

// dk and dv of 64 keys: through all heads that share them and all queries of their sequence.
template <int D>
__global__ void __launch_bounds__(kThreads) key_kernel(AttentionGradientArgs args) {
  extern __shared__ float4 room[];
  float* const queries = reinterpret_cast<float*>(room);
  float* const douts = queries + kTile * kRowStride<D>;
  float* const keys = douts + kTile * kRowStride<D>;
  float* const values = keys + kTile * kRowStride<D>;
  float* const tile = values + kTile * kRowStride<D>;
  __shared__ std::uint8_t kept[kTile * kTile / kKeysOfBits];

  const AttentionShape& shape = args.shape;
  const Place place = find_place(shape, blockIdx.x, true);
  if (place.sequence < 0) return;
  const int group = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * group;
  const int tx = static_cast<int>(threadIdx.x) % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  const Head shared = head_of(shape, place, first_head);
  load_rows<D>(shared.k, shared.k_width, place.begin, place.lk, shape.d, keys);
  load_rows<D>(shared.v, shared.k_width, place.begin, place.lk, shape.d, values);
  Sums<D> dk = {}, dv = {};
  int first_query = 0;
  if (shape.is_causal && shape.mask.data == nullptr) first_query = place.begin;  // a whole tile's
  for (int head = first_head; head < first_head + group; ++head) {
    const Head at = head_of(shape, place, head);
    for (int q_begin = first_query; q_begin < place.lq; q_begin += kTile) {
      __syncthreads();
      load_rows<D>(at.q, at.q_width, q_begin, place.lq, shape.d, queries);
      load_rows<D>(args.dout + at.q_place, at.q_width, q_begin, place.lq, shape.d, douts);
      if (shape.threshold != 0) draw_bits(shape, place, head, q_begin, place.begin, kept);
      __syncthreads();
      float weight[kEach][kEach], dscore[kEach][kEach];
      score_gradients<D>(shape, place, head, q_begin, place.begin, queries, douts, keys, values,
                         args.statistics, kept, ty, tx, weight, dscore);
      store_tile(weight, ty, tx, tile);
      __syncthreads();
      add_weighted_by_columns<D>(tile, douts, ty, tx, dv);
      __syncthreads();
      store_tile(dscore, ty, tx, tile);
      __syncthreads();
      add_weighted_by_columns<D>(tile, queries, ty, tx, dk);
    }
  }
  store_rows<D>(dk, place.begin, place.lk, shape.d, shared.k_width, ty, tx,
                args.dk + shared.k_place);
  store_rows<D>(dv, place.begin, place.lk, shape.d, shared.k_width, ty, tx,
                args.dv + shared.k_place);
}

// dq of 64 queries of one head.
template <int D>
__global__ void __launch_bounds__(kThreads) query_kernel(AttentionGradientArgs args) {
  extern __shared__ float4 room[];
  float* const queries = reinterpret_cast<float*>(room);
  float* const douts = queries + kTile * kRowStride<D>;
  float* const keys = douts + kTile * kRowStride<D>;
  float* const values = keys + kTile * kRowStride<D>;
  float* const tile = values + kTile * kRowStride<D>;
  __shared__ std::uint8_t kept[kTile * kTile / kKeysOfBits];

  const AttentionShape& shape = args.shape;
  const Place place = find_place(shape, blockIdx.x, false);
  if (place.sequence < 0) return;
  const int head = static_cast<int>(blockIdx.y);
  const Head at = head_of(shape, place, head);
  const int tx = static_cast<int>(threadIdx.x) % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  load_rows<D>(at.q, at.q_width, place.begin, place.lq, shape.d, queries);
  load_rows<D>(args.dout + at.q_place, at.q_width, place.begin, place.lq, shape.d, douts);
  Sums<D> dq = {};
  int keys_end = place.lk;
  if (shape.is_causal) keys_end = min(keys_end, place.begin + kTile);
  for (int k_begin = 0; k_begin < keys_end; k_begin += kTile) {
    __syncthreads();
    load_rows<D>(at.k, at.k_width, k_begin, place.lk, shape.d, keys);
    load_rows<D>(at.v, at.k_width, k_begin, place.lk, shape.d, values);
    if (shape.threshold != 0) draw_bits(shape, place, head, place.begin, k_begin, kept);
    __syncthreads();
    float weight[kEach][kEach], dscore[kEach][kEach];
    score_gradients<D>(shape, place, head, place.begin, k_begin, queries, douts, keys, values,
                       args.statistics, kept, ty, tx, weight, dscore);
    store_tile(dscore, ty, tx, tile);
    __syncthreads();
    add_weighted<D>(tile, keys, ty, tx, dq);
  }
  store_rows<D>(dq, place.begin, place.lq, shape.d, at.q_width, ty, tx, args.dq + at.q_place);
}

// At most so many tiles, whatever the offsets are.
unsigned most_tiles(const AttentionShape& shape, bool by_keys) {
  const auto tiles = [](std::int64_t rows) { return (rows + kTile - 1) / kTile; };
  std::int64_t count = 0;
  if (shape.offsets.data == nullptr)
    count = shape.sequences.capacity * tiles(by_keys ? shape.lk : shape.lq);
  else if (shape.only_first && !by_keys)
    count = shape.sequences.capacity;
  else
    count = shape.keys.capacity / kTile + shape.sequences.capacity;
  return static_cast<unsigned>(count);
}

template <int D>
constexpr int bytes_of(int tiles) {
  return static_cast<int>(sizeof(float)) * (tiles * kTile * kRowStride<D> + kTile * kScoreStride);
}

template <int D>
void run_forward(const AttentionShape& shape, float* y, const float* dout, float* statistics,
                 cudaStream_t on) {
  cudaFuncSetAttribute(forward_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       bytes_of<D>(2));
  const dim3 grid(most_tiles(shape, false), static_cast<unsigned>(shape.heads));
  if (grid.x == 0) return;
  forward_kernel<D><<<grid, kThreads, bytes_of<D>(2), on>>>(shape, y, dout, statistics);
}

template <int D>
void run_backward(const AttentionGradientArgs& args, cudaStream_t on) {
  const AttentionShape& shape = args.shape;
  run_forward<D>(shape, nullptr, args.dout, args.statistics, on);
  cudaFuncSetAttribute(key_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes_of<D>(4));
  cudaFuncSetAttribute(query_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       bytes_of<D>(4));
  const dim3 keys(most_tiles(shape, true), static_cast<unsigned>(shape.kv_heads));
  if (keys.x != 0) key_kernel<D><<<keys, kThreads, bytes_of<D>(4), on>>>(args);
  const dim3 queries(most_tiles(shape, false), static_cast<unsigned>(shape.heads));
  if (queries.x != 0) query_kernel<D><<<queries, kThreads, bytes_of<D>(4), on>>>(args);
}

// Rows that no tile reaches: beyond the real ones, and of queries without keys.
void clear_rows(float* rows, const Extent& extent, std::int64_t width, bool always,
                cudaStream_t on) {
  if (extent.symbol == nullptr && !always) return;
  cudaMemsetAsync(rows, 0, static_cast<std::size_t>(extent.capacity * width) * sizeof(float), on);
}

}  // namespace

void attention(const AttentionArgs& args, Stream* stream) {
  const AttentionShape& shape = args.shape;
  const cudaStream_t on = stream_of(stream);
  clear_rows(args.y, shape.queries, static_cast<std::int64_t>(shape.heads) * shape.d,
             shape.only_first, on);
  if (shape.d <= 32)
    run_forward<32>(shape, args.y, nullptr, nullptr, on);
  else if (shape.d <= 64)
    run_forward<64>(shape, args.y, nullptr, nullptr, on);
  else
    run_forward<128>(shape, args.y, nullptr, nullptr, on);
}

void attention_gradient(const AttentionGradientArgs& args, Stream* stream) {
  const AttentionShape& shape = args.shape;
  const cudaStream_t on = stream_of(stream);
  const std::int64_t q_width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const std::int64_t k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  clear_rows(args.dq, shape.queries, q_width, shape.only_first, on);
  clear_rows(args.dk, shape.keys, k_width, false, on);
  clear_rows(args.dv, shape.keys, k_width, false, on);
  if (shape.d <= 32)
    run_backward<32>(args, on);
  else if (shape.d <= 64)
    run_backward<64>(args, on);
  else
    run_backward<128>(args, on);
}

}  // namespace lathe::engine::cuda
