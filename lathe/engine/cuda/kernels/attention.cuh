#pragma once

// What the attention kernels share: which sequence and rows a block has, which keys a query sees,
// which weights dropout keeps, and what belongs to no sequence.
//
// Which rows a block has is found from the offsets on the device, because a captured graph serves
// all batches of its size. Scores are kept times log2(e), so that a weight is one power of two.
// Masked scores are very low numbers rather than minus infinity: a query that sees no key then
// weighs all keys of its sequence alike, as defined; keys beyond the sequence have minus infinity.

#include <cuda_bf16.h>

#include "lathe/engine/cuda/kernels/dropout.cuh"

namespace lathe::engine::cuda {

inline constexpr int kTile = kAttentionTile;
inline constexpr int kKeysOfBits = 8;  // that one block of random bits decides
inline constexpr float kMasked = -1e30f;
inline constexpr float kLog2E = 1.4426950408889634f;

// The ways to compute, each in a file of its own; attention.cu chooses.
void attend_float(const AttentionArgs&, cudaStream_t);
/// False where a block has too little shared memory; float does it as well then.
bool try_attend_tf32(const AttentionArgs&, cudaStream_t);
void attend_bf16(const AttentionArgs&, cudaStream_t);
/// False where there is more to do than it is made for.
bool try_attend_short(const AttentionArgs&, cudaStream_t);
void attend_once(const AttentionArgs&, cudaStream_t);
/// Heads of more than kMostHeadSize numbers.
void attend_wide(const AttentionArgs&, cudaStream_t);
/// Leaves dq in parts, num_query_parts of them.
void differentiate_float(const AttentionGradientArgs&, int parts, cudaStream_t);
bool try_differentiate_tf32(const AttentionGradientArgs&, cudaStream_t);
void differentiate_bf16(const AttentionGradientArgs&, cudaStream_t);
void differentiate_once(const AttentionGradientArgs&, cudaStream_t);
/// Reads the facts of queries; leaves no parts.
void differentiate_wide(const AttentionGradientArgs&, cudaStream_t);

/// One sequence, where it lies among the rows of q and of k, and the first row of a tile of it.
struct Place {
  int sequence;  ///< -1: none
  std::int64_t q_start, k_start;
  int lq, lk, begin;
};

__host__ __device__ inline int tiles_of(std::int64_t length, int tile = kTile) {
  return static_cast<int>((length + tile - 1) / tile);
}

/// Sequence s as a whole; of no length where the offsets are wrong.
__device__ inline Place sequence_at(const AttentionShape& shape, int s) {
  if (shape.offsets.data == nullptr)
    return {s, s * shape.lq, s * shape.lk, static_cast<int>(shape.lq), static_cast<int>(shape.lk),
            0};
  std::int64_t begin = integer_at(shape.offsets, s), end = integer_at(shape.offsets, s + 1);
  if (begin < 0 || end < begin || end > real_size(shape.keys)) {
    report(shape.fault);
    begin = end = 0;
  }
  const auto length = static_cast<int>(end - begin);
  return {s, shape.only_first ? s : begin, begin, shape.only_first ? 1 : length, length, 0};
}

/// The tile number `index`, counted over the queries of all sequences or over their keys. Every
/// warp finds it for itself, which is sooner than one for all.
__device__ inline Place find_place(const AttentionShape& shape, int index, bool by_keys,
                                   int tile = kTile) {
  Place found{};
  found.sequence = -1;
  if (shape.offsets.data == nullptr) {
    const int per = tiles_of(by_keys ? shape.lk : shape.lq, tile);
    const int s = index / per;
    if (s >= real_size(shape.sequences)) return found;
    found = sequence_at(shape, s);
    found.begin = index % per * tile;
    return found;
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto sequences = static_cast<int>(real_size(shape.sequences));
  int before = 0;
  for (int base = 0; base < sequences; base += kWarp) {
    const int s = base + lane;
    Place place{};
    if (s < sequences) place = sequence_at(shape, s);
    const int tiles = tiles_of(by_keys ? place.lk : place.lq, tile);
    int up_to = tiles;  // this lane's included
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int other = __shfl_up_sync(kAllLanes, up_to, distance);
      if (lane >= distance) up_to += other;
    }
    const int last = before + up_to, first = last - tiles;
    const unsigned hits = __ballot_sync(kAllLanes, index >= first && index < last);
    if (hits != 0) {
      const int owner = __ffs(static_cast<int>(hits)) - 1;
      found.sequence = base + owner;
      found.q_start = __shfl_sync(kAllLanes, place.q_start, owner);
      found.k_start = __shfl_sync(kAllLanes, place.k_start, owner);
      found.lq = __shfl_sync(kAllLanes, place.lq, owner);
      found.lk = __shfl_sync(kAllLanes, place.lk, owner);
      found.begin = (index - __shfl_sync(kAllLanes, first, owner)) * tile;
      return found;
    }
    before += __shfl_sync(kAllLanes, up_to, kWarp - 1);
  }
  return found;
}

/// At most so many tiles, whatever the offsets are.
inline unsigned most_tiles(const AttentionShape& shape, bool by_keys, int tile = kTile) {
  if (shape.offsets.data == nullptr)
    return static_cast<unsigned>(shape.sequences.capacity *
                                 tiles_of(by_keys ? shape.lk : shape.lq, tile));
  if (shape.only_first && !by_keys) return static_cast<unsigned>(shape.sequences.capacity);
  return static_cast<unsigned>(shape.keys.capacity / tile + shape.sequences.capacity);
}

/// Queries of a sequence if all were of one length.
inline std::int64_t average_queries(const AttentionShape& shape) {
  const std::int64_t sequences = shape.sequences.capacity;
  return sequences == 0 ? 0 : shape.queries.capacity / sequences;
}

/// Where the elements of one head of one sequence begin, and how far its rows are apart.
struct HeadPlace {
  std::int64_t q, k, y;  ///< k: of v as well; y: of dout as well
  std::int64_t q_stride, k_stride, y_stride;
};
__device__ inline HeadPlace head_place(const AttentionShape& shape, const Place& place, int head) {
  HeadPlace at;
  at.y_stride = static_cast<std::int64_t>(shape.heads) * shape.d;
  at.q_stride = shape.q_stride != 0 ? shape.q_stride : at.y_stride;
  at.k_stride =
      shape.k_stride != 0 ? shape.k_stride : static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t column = static_cast<std::int64_t>(head) * shape.d;
  at.q = place.q_start * at.q_stride + column;
  at.y = place.q_start * at.y_stride + column;
  at.k = place.k_start * at.k_stride +
         static_cast<std::int64_t>(head / (shape.heads / shape.kv_heads)) * shape.d;
  return at;
}
__device__ inline std::int64_t statistics_place(const AttentionShape& shape, const Place& place,
                                                int head, int query) {
  return kAttentionStatistics * ((place.q_start + query) * shape.heads + head);
}

__device__ inline bool is_masked(const AttentionShape& shape, const Place& place, int query,
                                 int key) {
  if (shape.is_causal && key > query) return true;
  return shape.mask.data != nullptr && integer_at(shape.mask, place.k_start + key) == 0;
}
/// Whether all scores of a tile count as they are.
__device__ inline bool is_plain(const AttentionShape& shape, const Place& place, int q_begin,
                                int k_begin, int keys) {
  return shape.mask.data == nullptr && k_begin + keys <= place.lk &&
         !(shape.is_causal && k_begin + keys - 1 > q_begin);
}
/// Keys that some query below `q_end` may see. One that sees nothing at all looks at all of them.
__device__ inline int keys_seen(const AttentionShape& shape, const Place& place, int q_end) {
  return shape.is_causal && shape.mask.data == nullptr ? min(place.lk, q_end) : place.lk;
}
/// The tile's first query that may see a key from `k_begin` on.
__device__ inline int first_query_seeing(const AttentionShape& shape, int k_begin) {
  return shape.is_causal && shape.mask.data == nullptr ? k_begin / kTile * kTile : 0;
}

/// Which of eight neighbouring keys a query keeps.
struct KeptKeys {
  ops::DropoutStream stream;
  std::uint32_t example, head, threshold;

  __device__ KeptKeys(const AttentionShape& shape, const Place& place, int of_head)
      : example(0), head(static_cast<std::uint32_t>(of_head)), threshold(shape.threshold) {
    if (threshold == 0) return;
    stream = stream_of(shape.random, shape.site);
    example = static_cast<std::uint32_t>(integer_at(shape.examples, place.sequence));
  }
  __device__ PhiloxCounter draw(int query, int key) const {
    return ops::attention_dropout_block(stream, example, head, static_cast<std::uint32_t>(query),
                                        static_cast<std::uint32_t>(key / kKeysOfBits));
  }
  /// Whether the first or the second key of a word is kept. Half a word is compared by a whole one:
  /// what lies below does not count.
  __device__ bool keeps(std::uint32_t word, int which) const {
    return (which == 0 ? word << 16 : word) >= threshold << 16;
  }
  /// One bit for each key.
  __device__ std::uint32_t bits(int query, int key) const {
    const PhiloxCounter random = draw(query, key);
    std::uint32_t kept = 0;
#pragma unroll
    for (int i = 0; i < kKeysOfBits; ++i) kept |= keeps(random[i / 2], i % 2) ? 1u << i : 0u;
    return kept;
  }
};

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// A sum's inverse: zero where no key was seen; what is not a number stays that.
__device__ inline float inverse_of(float total) {
  const float inverse = total > 0 ? 1.0f / total : 0.0f;
  return total == total ? inverse : total;
}

/// What the gradient needs of one query and head, made by one launch for all tiles. A weight is
/// 2^(score - sum). A query that sees no key at all has masked scores of zero, any other minus
/// infinity.
struct alignas(16) QueryFacts {
  float sum;   ///< log2 of the sum of 2^score
  float mean;  ///< dot(dout, y) times the scale of scores
  float masked;
  float unused;
};
__device__ inline const QueryFacts* facts_of(const AttentionGradientArgs& args) {
  return reinterpret_cast<const QueryFacts*>(args.scratch);
}
/// Where a part of dq begins, behind the facts.
__device__ inline float* part_of(const AttentionGradientArgs& args, int part) {
  const std::int64_t rows = args.shape.queries.capacity * args.shape.heads;
  return args.scratch + rows * static_cast<std::int64_t>(sizeof(QueryFacts) / sizeof(float)) +
         part * rows * args.shape.d;
}

/// Writes a result, rounded to bfloat16 where its element or the run's precision says so.
template <typename T>
__device__ inline void store(T* to, float x, bool rounds) {
  if constexpr (sizeof(T) == sizeof(float))
    *to = rounds ? __bfloat162float(__float2bfloat16_rn(x)) : x;
  else
    *to = __float2bfloat16_rn(x);
}

/// Clears this block's share of the rows beyond the real ones. All blocks of the grid call it,
/// last: how many rows are real takes a while to arrive.
template <typename T>
__device__ void clear_rows(T* rows, const Extent& extent, std::int64_t stride, std::int64_t width) {
  const std::int64_t blocks = static_cast<std::int64_t>(gridDim.x) * gridDim.y;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  for (std::int64_t row = real_size(extent) + block; row < extent.capacity; row += blocks)
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) rows[row * stride + i] = T(0.0f);
}

/// 16 bytes from device memory to shared memory while other work goes on; zeros unless `is_there`.
__device__ inline void copy_ahead(void* to, const void* from, bool is_there) {
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
               "r"(is_there ? 16 : 0)
               : "memory");
}
__device__ inline void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `kOpen` of the last closed groups of copies are under way.
template <int kOpen>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}
/// A barrier of some whole warps of a block: number `First + which` of `Count`; number 0 is
/// __syncthreads. A number that only the instruction knew would cost a block all sixteen.
template <int Threads, int First, int Count>
__device__ void meet(int which) {
  if constexpr (Count > 1) {
    if (which > 0) return meet<Threads, First + 1, Count - 1>(which - 1);
  }
  asm volatile("bar.sync %0, %1;" ::"n"(First), "n"(Threads) : "memory");
}

/// The most shared memory a block of this device can ask for.
int most_shared_memory();

}  // namespace lathe::engine::cuda
