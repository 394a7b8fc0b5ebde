// Attention where each sequence asks once: the last layer of a classifier, a decoder's next token.
//
// There is little to compute and all keys to read, so blocks share a sequence: each has 64 keys, a
// warp eight of them, a lane pairs of neighbours of their rows. A block leaves what it found beside
// the others', and a second kernel joins the blocks of a sequence in the order of its keys.

#include "lathe/engine/cuda/kernels/attention.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;
constexpr int kKeysOfWarp = kTile / kWarps;
constexpr int kMostElements = kMostHeadSize / kWarp;  // of a lane

// Where a tile of keys leaves its numbers: tiles of sequences that are not full leave gaps.
__device__ std::int64_t tile_number(const Place& place) {
  return place.k_start / kTile + place.sequence + place.begin / kTile;
}

// Number e of a lane is this element of a row.
__device__ int column_of(int lane, int e) {
  return (e / 2 * kWarp + lane) * 2 + e % 2;
}
__device__ bool has_pairs(const AttentionShape& shape) {
  return shape.d % 2 == 0 && shape.q_stride % 2 == 0 && shape.k_stride % 2 == 0;
}

// Two neighbours as they lie in memory, so that all reads are under way before one is used.
__device__ float2 read_pair(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}
__device__ std::uint32_t read_pair(const __nv_bfloat16* from) {
  return *reinterpret_cast<const std::uint32_t*>(from);
}
__device__ float2 widen(float2 pair) {
  return pair;
}
__device__ float2 widen(std::uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
__device__ void store_pair(float* to, float2 pair, bool rounds) {
  *reinterpret_cast<float2*>(to) = rounds ? __bfloat1622float2(__float22bfloat162_rn(pair)) : pair;
}
__device__ void store_pair(__nv_bfloat16* to, float2 pair, bool) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __float22bfloat162_rn(pair);
}

template <int N, typename T>
__device__ void load_row(const T* row, int d, bool in_pairs, int lane, float (&elements)[N]) {
#pragma unroll
  for (int e = 0; e < N; e += 2) {
    const int column = column_of(lane, e);
    float2 pair = make_float2(0, 0);
    if (in_pairs) {
      decltype(read_pair(row)) read{};
      if (column < d) read = read_pair(row + column);
      pair = widen(read);
    } else {
      if (column < d) pair.x = static_cast<float>(row[column]);
      if (column + 1 < d) pair.y = static_cast<float>(row[column + 1]);
    }
    elements[e] = pair.x;
    elements[e + 1] = pair.y;
  }
}
template <int N, typename T>
__device__ void store_row(const float (&elements)[N], int d, bool in_pairs, bool rounds, int lane,
                          T* row) {
#pragma unroll
  for (int e = 0; e < N; e += 2) {
    const int column = column_of(lane, e);
    if (in_pairs) {
      if (column < d) store_pair(row + column, make_float2(elements[e], elements[e + 1]), rounds);
    } else {
      if (column < d) store(row + column, elements[e], rounds);
      if (column + 1 < d) store(row + column + 1, elements[e + 1], rounds);
    }
  }
}
template <int N>
__device__ float multiply(const float (&a)[N], const float (&b)[N]) {
  float sum = 0;
#pragma unroll
  for (int e = 0; e < N; ++e) sum = fmaf(a[e], b[e], sum);
  return sum;
}

// The rows of a warp's keys, all read before any is used.
template <int N, typename T>
__device__ void load_keys(const T* rows, std::int64_t stride, int begin, int length, int d,
                          bool in_pairs, int lane, float (&keys)[kKeysOfWarp][N]) {
#pragma unroll
  for (int n = 0; n < kKeysOfWarp; ++n)
    load_row(rows + (begin + n) * stride, begin + n < length ? d : 0, in_pairs, lane, keys[n]);
}

// The sums of eight numbers over a warp. Lanes first share the numbers out, each half of a pair
// adding half of them, until a lane has one.
__device__ void join_each(float (&sums)[kKeysOfWarp]) {
  static_assert(kKeysOfWarp == 8);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int count = 4; count > 0; count /= 2) {
    const bool is_upper = (lane & 4 * count) != 0;
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const float given = is_upper ? sums[n] : sums[n + count];
      const float own = is_upper ? sums[n + count] : sums[n];
      sums[n] = own + __shfl_xor_sync(kAllLanes, given, 4 * count);
    }
  }
  float sum = sums[0];
  sum += __shfl_xor_sync(kAllLanes, sum, 2);
  sum += __shfl_xor_sync(kAllLanes, sum, 1);
#pragma unroll
  for (int n = 0; n < kKeysOfWarp; ++n) sums[n] = __shfl_sync(kAllLanes, sum, 4 * n);
}

// Scores times log2(e) of a warp's keys.
template <int N>
__device__ void score_keys(const AttentionShape& shape, const Place& place, int begin,
                           const float (&q)[N], const float (&keys)[kKeysOfWarp][N],
                           float (&score)[kKeysOfWarp], bool (&masked)[kKeysOfWarp]) {
#pragma unroll
  for (int n = 0; n < kKeysOfWarp; ++n) score[n] = multiply(q, keys[n]);
  join_each(score);
#pragma unroll
  for (int n = 0; n < kKeysOfWarp; ++n) {
    const int key = begin + n;
    masked[n] = key >= place.lk || is_masked(shape, place, 0, key);
    score[n] *= shape.scale * kLog2E;
    if (masked[n]) score[n] = key >= place.lk ? -INFINITY : kMasked;
  }
}

// Adds the warps' sums of rows, in order: thread i has element i.
template <int N>
__device__ float join_warps(const float (&sums)[N], float (*room)[kMostHeadSize], int warp,
                            int lane) {
  __syncthreads();
#pragma unroll
  for (int e = 0; e < N; ++e) room[warp][column_of(lane, e)] = sums[e];
  __syncthreads();
  float total = 0;
  if (threadIdx.x < N * kWarp)
    for (int w = 0; w < kWarps; ++w) total += room[w][threadIdx.x];
  return total;
}

template <int N, typename T>
__global__ void __launch_bounds__(kThreads) forward_kernel(AttentionArgs args) {
  __shared__ float room[kWarps][kMostHeadSize];
  __shared__ float most[kWarps], sum[kWarps];
  const AttentionShape& shape = args.shape;
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), true);
  if (place.sequence < 0) return;
  const int head = static_cast<int>(blockIdx.y);
  const HeadPlace at = head_place(shape, place, head);
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int begin = place.begin + warp * kKeysOfWarp;
  const bool in_pairs = has_pairs(shape);
  float q[N], keys[kKeysOfWarp][N], values[kKeysOfWarp][N];
  load_row(static_cast<const T*>(shape.q) + at.q, shape.d, in_pairs, lane, q);
  load_keys(static_cast<const T*>(shape.k) + at.k, at.k_stride, begin, place.lk, shape.d, in_pairs,
            lane, keys);
  load_keys(static_cast<const T*>(shape.v) + at.k, at.k_stride, begin, place.lk, shape.d, in_pairs,
            lane, values);
  const KeptKeys kept(shape, place, head);
  const std::uint32_t bits = shape.threshold != 0 ? kept.bits(0, begin) : 0;
  float score[kKeysOfWarp];
  bool masked[kKeysOfWarp];
  score_keys(shape, place, begin, q, keys, score, masked);
  float highest = score[0];
#pragma unroll
  for (int n = 1; n < kKeysOfWarp; ++n) highest = fmaxf(highest, score[n]);
  if (lane == 0) most[warp] = highest;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, most[w]);
  float total = 0, sums[N] = {};
#pragma unroll
  for (int n = 0; n < kKeysOfWarp; ++n) {
    float weight = power_of_two(score[n] - highest);
    total += weight;
    if (shape.threshold != 0) weight = (bits >> n & 1u) != 0 ? weight * shape.dropout_scale : 0.0f;
#pragma unroll
    for (int e = 0; e < N; ++e) sums[e] = fmaf(weight, values[n][e], sums[e]);
  }
  if (lane == 0) sum[warp] = total;
  const float element = join_warps(sums, room, warp, lane);
  float* const numbers = args.scratch + (tile_number(place) * shape.heads + head) * (shape.d + 2);
  if (static_cast<int>(threadIdx.x) < shape.d) numbers[2 + threadIdx.x] = element;
  if (threadIdx.x == 0) {
    total = 0;
    for (int w = 0; w < kWarps; ++w) total += sum[w];
    numbers[0] = highest;
    numbers[1] = total;
  }
}

// A block for each sequence and head, a thread for each element.
template <typename T>
__global__ void __launch_bounds__(kMostHeadSize) join_kernel(AttentionArgs args) {
  const AttentionShape& shape = args.shape;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  T* const y = static_cast<T*>(args.y);
  const int sequence = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  if (sequence >= real_size(shape.sequences)) return clear_rows(y, shape.queries, width, width);
  const Place place = sequence_at(shape, sequence);
  const std::int64_t step = static_cast<std::int64_t>(shape.heads) * (shape.d + 2);
  const float* const first = args.scratch + tile_number(place) * step + head * (shape.d + 2);
  const int tiles = tiles_of(place.lk);
  const int element = static_cast<int>(threadIdx.x);
  float highest = -INFINITY, total = 0, sum = 0;
  for (int tile = 0; tile < tiles; ++tile) highest = fmaxf(highest, first[tile * step]);
  for (int tile = 0; tile < tiles; ++tile) {
    const float* const numbers = first + tile * step;
    const float factor = power_of_two(numbers[0] - highest);
    total = fmaf(numbers[1], factor, total);
    if (element < shape.d) sum = fmaf(numbers[2 + element], factor, sum);
  }
  const float inverse = inverse_of(total);
  if (element < shape.d)
    store(y + place.q_start * width + static_cast<std::int64_t>(head) * shape.d + element,
          sum * inverse, shape.precision == Precision::Bf16);
  if (element == 0 && args.statistics != nullptr) {
    float* const kept = args.statistics + statistics_place(shape, place, head, 0);
    kept[0] = highest;
    kept[1] = inverse;
  }
  clear_rows(y, shape.queries, width, width);
}

// dk and dv of 64 keys, through all heads that share them, and each head's part of dq.
template <int N, typename T>
__global__ void __launch_bounds__(kThreads, N == 2 ? 2 : 1)
    backward_kernel(AttentionGradientArgs args) {
  __shared__ float room[kWarps][kMostHeadSize];
  const AttentionShape& shape = args.shape;
  const bool rounds = shape.precision == Precision::Bf16;
  const std::int64_t width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t stride = shape.k_stride != 0 ? shape.k_stride : width;
  const auto clear = [&] {
    clear_rows(static_cast<T*>(args.dk), shape.keys, stride, width);
    clear_rows(static_cast<T*>(args.dv), shape.keys, stride, width);
  };
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), true);
  if (place.sequence < 0) return clear();
  const int heads_each = shape.heads / shape.kv_heads;
  const int first_head = static_cast<int>(blockIdx.y) * heads_each;
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int begin = place.begin + warp * kKeysOfWarp;
  const bool in_pairs = has_pairs(shape);
  const HeadPlace shared = head_place(shape, place, first_head);
  float keys[kKeysOfWarp][N], values[kKeysOfWarp][N];
  load_keys(static_cast<const T*>(shape.k) + shared.k, stride, begin, place.lk, shape.d, in_pairs,
            lane, keys);
  load_keys(static_cast<const T*>(shape.v) + shared.k, stride, begin, place.lk, shape.d, in_pairs,
            lane, values);
  float dk[kKeysOfWarp][N] = {}, dv[kKeysOfWarp][N] = {};
  for (int head = first_head; head < first_head + heads_each; ++head) {
    const HeadPlace at = head_place(shape, place, head);
    float q[N], dout[N], y[N], dq[N] = {};
    load_row(static_cast<const T*>(shape.q) + at.q, shape.d, in_pairs, lane, q);
    load_row(static_cast<const T*>(args.dout) + at.y, shape.d, in_pairs, lane, dout);
    load_row(static_cast<const T*>(args.y) + at.y, shape.d, in_pairs, lane, y);
    const KeptKeys kept(shape, place, head);
    const std::uint32_t bits = shape.threshold != 0 ? kept.bits(0, begin) : 0;
    const float* const statistics = args.statistics + statistics_place(shape, place, head, 0);
    const float highest = statistics[0], inverse = statistics[1];
    const float mean = join_warp(multiply(dout, y), Add());
    float score[kKeysOfWarp], dweight[kKeysOfWarp];
    bool masked[kKeysOfWarp];
    score_keys(shape, place, begin, q, keys, score, masked);
#pragma unroll
    for (int n = 0; n < kKeysOfWarp; ++n) dweight[n] = multiply(dout, values[n]);
    join_each(dweight);
#pragma unroll
    for (int n = 0; n < kKeysOfWarp; ++n) {
      const float p = power_of_two(score[n] - highest) * inverse;
      float factor = 1;
      if (shape.threshold != 0) factor = (bits >> n & 1u) != 0 ? shape.dropout_scale : 0.0f;
      const float ds = masked[n] ? 0.0f : shape.scale * p * (dweight[n] * factor - mean);
#pragma unroll
      for (int e = 0; e < N; ++e) {
        dq[e] = fmaf(ds, keys[n][e], dq[e]);
        dk[n][e] = fmaf(ds, q[e], dk[n][e]);
        dv[n][e] = fmaf(p * factor, dout[e], dv[n][e]);
      }
    }
    const float element = join_warps(dq, room, warp, lane);
    if (static_cast<int>(threadIdx.x) < shape.d)
      args.scratch[(tile_number(place) * shape.heads + head) * shape.d + threadIdx.x] = element;
  }
#pragma unroll
  for (int n = 0; n < kKeysOfWarp; ++n) {
    if (begin + n >= place.lk) continue;
    const std::int64_t row = shared.k + (begin + n) * stride;
    store_row(dk[n], shape.d, in_pairs, rounds, lane, static_cast<T*>(args.dk) + row);
    store_row(dv[n], shape.d, in_pairs, rounds, lane, static_cast<T*>(args.dv) + row);
  }
  clear();
}

template <typename T>
__global__ void __launch_bounds__(kMostHeadSize) join_queries_kernel(AttentionGradientArgs args) {
  const AttentionShape& shape = args.shape;
  const std::int64_t width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const std::int64_t stride = shape.q_stride != 0 ? shape.q_stride : width;
  T* const dq = static_cast<T*>(args.dq);
  const int sequence = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  if (sequence >= real_size(shape.sequences)) return clear_rows(dq, shape.queries, stride, width);
  const Place place = sequence_at(shape, sequence);
  const int element = static_cast<int>(threadIdx.x);
  float sum = 0;
  if (element < shape.d) {
    for (int tile = 0; tile < tiles_of(place.lk); ++tile)
      sum += args.scratch[((tile_number(place) + tile) * shape.heads + head) * shape.d + element];
    store(dq + place.q_start * stride + static_cast<std::int64_t>(head) * shape.d + element, sum,
          shape.precision == Precision::Bf16);
  }
  clear_rows(dq, shape.queries, stride, width);
}

dim3 tiles_by(const AttentionShape& shape, std::int32_t heads) {
  return {most_tiles(shape, true), static_cast<unsigned>(heads), 1};
}
dim3 sequences_by(const AttentionShape& shape) {
  return {static_cast<unsigned>(shape.sequences.capacity), static_cast<unsigned>(shape.heads), 1};
}

template <typename T>
void run(const AttentionArgs& args, cudaStream_t on) {
  const AttentionShape& shape = args.shape;
  if (const dim3 grid = tiles_by(shape, shape.heads); grid.x != 0) {
    if (shape.d <= 2 * kWarp)
      forward_kernel<2, T><<<grid, kThreads, 0, on>>>(args);
    else
      forward_kernel<kMostElements, T><<<grid, kThreads, 0, on>>>(args);
  }
  join_kernel<T><<<sequences_by(shape), kMostHeadSize, 0, on>>>(args);
}
template <typename T>
void run(const AttentionGradientArgs& args, cudaStream_t on) {
  const AttentionShape& shape = args.shape;
  if (const dim3 grid = tiles_by(shape, shape.kv_heads); grid.x != 0) {
    if (shape.d <= 2 * kWarp)
      backward_kernel<2, T><<<grid, kThreads, 0, on>>>(args);
    else
      backward_kernel<kMostElements, T><<<grid, kThreads, 0, on>>>(args);
  }
  join_queries_kernel<T><<<sequences_by(shape), kMostHeadSize, 0, on>>>(args);
}

}  // namespace

void attend_once(const AttentionArgs& args, cudaStream_t on) {
  if (args.shape.elements == Number::BF16)
    run<__nv_bfloat16>(args, on);
  else
    run<float>(args, on);
}

void differentiate_once(const AttentionGradientArgs& args, cudaStream_t on) {
  if (args.shape.elements == Number::BF16)
    run<__nv_bfloat16>(args, on);
  else
    run<float>(args, on);
}

}  // namespace lathe::engine::cuda
