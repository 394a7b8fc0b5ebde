#pragma once

// The gradient of attention by tensor cores, twice through all scores: blocks of keys go through
// the queries that see them and make dk and dv; blocks of queries go through keys and make dq. So
// each result belongs to one block and is added up in registers, in one order. Scores and their
// gradients are made twice, seven products instead of five: less than it costs to add dq up in
// device memory.
//
// A group of four warps has 64 rows, of keys and values or of queries and dout, and multiplies them
// by tiles of the others. So weights and gradients of scores are at once left operands of the next
// products, in registers.

#include "lathe/engine/cuda/kernels/attention_group.cuh"

namespace lathe::engine::cuda {

/// How shared memory is laid out: the block's own rows, then some tiles that it goes through, the
/// queries' facts, and what comes raw.
template <typename Products, int D>
struct BackwardLayout {
  using Element = typename Products::Element;
  static constexpr int kElement = static_cast<int>(sizeof(Element));
  /// Of 64 rows each. Two blocks of one group, which do not wait for each other, have room on a
  /// multiprocessor only with bfloat16.
  static constexpr int kGroups = D == 64 && Products::kCrosses ? 2 : 1;
  static constexpr int kThreads = kGroups * kTensorThreads;
  /// Rows of a tile that is gone through: what is kept for each grows with the head.
  static constexpr int kRows = D > 64 ? 32 : 64;
  static constexpr int kOwn = 2 * kGroups * kTile * D;
  static constexpr int kPair = 2 * kRows * D;  ///< queries and dout, or keys and values
  /// What is crossed comes raw while the pair before is used: one place is enough.
  static constexpr int kPlaces = Products::kCrosses ? 1 : 3, kFactPlaces = kPlaces + 1;
  static constexpr int kCrossedPlaces = Products::kCrosses ? 1 : 0;
  static constexpr int kRaw = Products::kCrosses ? kPair : 0;
  static constexpr int kBytes = (kOwn + (kPlaces + kCrossedPlaces) * kPair + kRaw) * kElement +
                                kFactPlaces * kRows * static_cast<int>(sizeof(QueryFacts));
};

/// One block's rows: of keys, or of queries.
template <typename Products, int D, bool ByKeys>
__device__ void differentiate_rows(const AttentionGradientArgs& args, int first_head, int heads) {
  using Element = typename Products::Element;
  using Group = GroupProducts<Products, D>;
  using Layout = BackwardLayout<Products, D>;
  constexpr int kRows = Layout::kRows, kRuns = kRows / 8;
  constexpr int kTileSize = kRows * D, kSteps = kRows / Products::kStep;
  constexpr int kAhead = Products::kCrosses ? 1 : 2;  // what comes raw has one place only
  constexpr int kBlockRows = Layout::kGroups * kTile, kBlockThreads = Layout::kThreads;
  extern __shared__ __align__(1024) uint4 chunks[];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  const int group = thread / kTensorThreads, warp = thread / kWarp % 4;

  const AttentionShape& shape = args.shape;
  const Place place = find_place(shape, static_cast<int>(blockIdx.x), ByKeys, kBlockRows);
  if (place.sequence < 0) return;
  const bool is_bf16 = shape.elements == Number::BF16;
  // Keys and values, or queries and dout.
  Element* const firsts = reinterpret_cast<Element*>(chunks);
  Element* const seconds = firsts + kBlockRows * D;
  Element* const tiles = firsts + Layout::kOwn;
  auto* const facts = reinterpret_cast<QueryFacts*>(
      tiles + (Layout::kPlaces + Layout::kCrossedPlaces) * Layout::kPair);
  float* raw = nullptr;
  if constexpr (Products::kCrosses)
    raw = reinterpret_cast<float*>(facts + Layout::kFactPlaces * kRows);
  float* const second_raw = Products::kCrosses ? raw + kTileSize : nullptr;

  // What is gone through: tiles of one head after the other.
  const int begin = ByKeys ? first_query_seeing(shape, place.begin) : 0;
  const int end = ByKeys ? place.lq : keys_seen(shape, place, place.begin + kBlockRows);
  const int tiles_of_head = tiles_of(max(end - begin, 0), kRows);
  const int count = tiles_of_head * heads;
  const auto head_of = [&](int n) { return first_head + (heads == 1 ? 0 : n / tiles_of_head); };
  const auto begin_of = [&](int n) { return begin + (heads == 1 ? n : n % tiles_of_head) * kRows; };
  const auto tile_at = [&](int n) { return tiles + n % Layout::kPlaces * Layout::kPair; };
  const auto across_at = [&](int n) {
    return Products::kCrosses ? tiles + Layout::kPair : tile_at(n);
  };
  const auto facts_at = [&](int n) { return facts + n % Layout::kFactPlaces * kRows; };
  const auto load = [&](int n) {
    if (n < count) {
      const HeadPlace at = head_place(shape, place, head_of(n));
      const int row = begin_of(n);
      Element* const to = tile_at(n);
      load_tile<Products, D, kRows, kBlockThreads, !ByKeys>(
          ByKeys ? shape.q : shape.k, is_bf16, ByKeys ? at.q : at.k,
          ByKeys ? at.q_stride : at.k_stride, row, ByKeys ? place.lq : place.lk, shape.d, thread,
          to, raw);
      load_tile<Products, D, kRows, kBlockThreads, !ByKeys>(
          ByKeys ? args.dout : shape.v, is_bf16, ByKeys ? at.y : at.k,
          ByKeys ? at.y_stride : at.k_stride, row, ByKeys ? place.lq : place.lk, shape.d, thread,
          to + kTileSize, second_raw);
      if (ByKeys && thread < kRows) {
        const bool is_there = row + thread < place.lq;
        const std::int64_t query = place.q_start + (is_there ? row + thread : 0);
        copy_ahead(facts_at(n) + thread, facts_of(args) + query * shape.heads + head_of(n),
                   is_there);
      }
    }
    close_copies();
  };

  const HeadPlace own = head_place(shape, place, first_head);
#pragma unroll 1
  for (int i = 0; i < 2 * Layout::kGroups; ++i) {
    const bool is_first = i < Layout::kGroups;
    load_tile<Products, D, kTile, kBlockThreads>(
        ByKeys ? (is_first ? shape.k : shape.v) : (is_first ? shape.q : args.dout), is_bf16,
        ByKeys     ? own.k
        : is_first ? own.q
                   : own.y,
        ByKeys     ? own.k_stride
        : is_first ? own.q_stride
                   : own.y_stride,
        place.begin + i % Layout::kGroups * kTile, ByKeys ? place.lk : place.lq, shape.d, thread,
        firsts + i * kTile * D, nullptr);
  }
#pragma unroll 1
  for (int n = 0; n < kAhead; ++n) load(n);
  const int own_begin = place.begin + group * kTile, first_row = own_begin + warp * 16;
  QueryFacts of_row[2] = {};
  if constexpr (!ByKeys) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = min(first_row + lane / 4 + half * 8, place.lq - 1);
      of_row[half] = facts_of(args)[(place.q_start + query) * shape.heads + first_head];
    }
  }
  const auto settle = [&](int n) {
    Element* const to = tile_at(n);
    Element* const across = Products::kCrosses ? across_at(n) : nullptr;
    Products::template settle<D, kRows, kBlockThreads>(raw, to, across, thread);
    Products::template settle<D, kRows, kBlockThreads>(
        second_raw, to + kTileSize, ByKeys && across != nullptr ? across + kTileSize : nullptr,
        thread);
    publish<Products>();
  };
  await_copies<kAhead - 1>();
#pragma unroll 1
  for (int i = 0; i < 2 * Layout::kGroups; ++i)
    Products::template settle<D, kTile, kBlockThreads>(nullptr, firsts + i * kTile * D, nullptr,
                                                       thread);
  publish<Products>();

  KeptKeys kept(shape, place, first_head);
  const float scale = shape.scale * kLog2E;
  const float gradient_scale =
      shape.threshold != 0 ? shape.scale * shape.dropout_scale : shape.scale;
  const Element* const own_firsts = firsts + group * kTile * D;
  const Element* const own_seconds = seconds + group * kTile * D;
  // Of queries or keys; of values.
  Accumulator sums[D / 8] = {}, value_sums[ByKeys ? D / 8 : 1] = {};
  for (int n = 0; n < count; ++n) {
    await_copies<kAhead - 1>();
    Group::template await<0>();
    pin(sums);
    if constexpr (ByKeys) pin(value_sums);
    if constexpr (Layout::kPlaces == 1) __syncthreads();  // the tile before is read
    settle(n);
    __syncthreads();
    load(n + kAhead);  // where the tile before was
    Accumulator weight[kRuns], dscore[kRuns];
    Group::open();
    Group::multiply(own_firsts, tile_at(n), warp, lane, weight);
    Group::multiply(own_seconds, tile_at(n) + kTileSize, warp, lane, dscore);
    const int row = begin_of(n);
    std::uint32_t hidden = 0, kept_bits = 0;
    if (!is_plain(shape, place, ByKeys ? row : own_begin, ByKeys ? own_begin : row,
                  ByKeys ? kTile : kRows)) {
      const EdgeScores edge = edge_scores<kRuns, ByKeys>(shape, place, first_row, row, lane);
      hidden = edge.masked | edge.beyond;
    }
    if (shape.threshold != 0) {
      kept.head = static_cast<std::uint32_t>(head_of(n));
      if constexpr (ByKeys) {
        const KeptByKeys<kRuns> keeps(kept, row, first_row, lane);
#pragma unroll
        for (int run = 0; run < kRuns; ++run) kept_bits |= keeps.of(run) << (4 * run);
      } else {
        drop_by_queries<kRuns>(kept, first_row, row, lane, [&](int run, int i, bool is_kept) {
          if (is_kept) kept_bits |= 1u << (4 * run + i);
        });
      }
    }
    const QueryFacts* const of_column = facts_at(n) + lane % 4 * 2;
    Group::template await<1>();
    pin(weight);
#pragma unroll
    for (int run = 0; run < kRuns; ++run)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const QueryFacts* const of = ByKeys ? of_column + run * 8 + i % 2 : of_row + i / 2;
        weight[run][i] = power_of_two(fmaf(weight[run][i], scale, -of->sum));
      }
    if (hidden != 0) {
#pragma unroll
      for (int run = 0; run < kRuns; ++run)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const QueryFacts* const of = ByKeys ? of_column + run * 8 + i % 2 : of_row + i / 2;
          if ((hidden >> (4 * run + i) & 1u) != 0)
            weight[run][i] = power_of_two(of->masked - of->sum);
        }
    }
    Group::template await<0>();
    pin(dscore);
    const auto differentiate = [&](auto is_kept) {
#pragma unroll
      for (int run = 0; run < kRuns; ++run)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const QueryFacts* const of = ByKeys ? of_column + run * 8 + i % 2 : of_row + i / 2;
          const float factor = is_kept(4 * run + i) ? gradient_scale : 0.0f;
          dscore[run][i] = weight[run][i] * fmaf(dscore[run][i], factor, -of->mean);
          if (ByKeys && !is_kept(4 * run + i)) weight[run][i] = 0;
        }
    };
    if (shape.threshold == 0)
      differentiate([](int) { return true; });
    else
      differentiate([&](int bit) { return (kept_bits >> bit & 1u) != 0; });
    // A masked key weighs nothing, or its query sees no key and its weights stay as they are.
    if (hidden != 0) {
#pragma unroll
      for (int run = 0; run < kRuns; ++run)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if ((hidden >> (4 * run + i) & 1u) != 0) dscore[run][i] = 0;
    }
    Fragment weights[kSteps], dscores[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if constexpr (ByKeys) Products::take(weight, step, weights[step]);
      Products::take(dscore, step, dscores[step]);
    }
    Group::open();
    if constexpr (ByKeys) Group::add(weights, across_at(n) + kTileSize, lane, value_sums);
    Group::add(dscores, across_at(n), lane, sums);
    // Products of TF32 that go on into the next turn of the loop would be taken one by one.
    if constexpr (Products::kCrosses) Group::template await<0>();
  }
  Group::template await<0>();
  pin(sums);
  if constexpr (ByKeys) pin(value_sums);
  __syncthreads();  // all is read

  Element* const room = firsts + thread / kWarp * 16 * D;
  if constexpr (ByKeys) {
    if (shape.threshold != 0) scale_rows(value_sums, {shape.dropout_scale, shape.dropout_scale});
    store_tile<Products, D>(sums, shape, own.k, own.k_stride, first_row, place.lk, lane, room,
                            args.dk);
    store_tile<Products, D>(value_sums, shape, own.k, own.k_stride, first_row, place.lk, lane, room,
                            args.dv);
  } else {
    store_tile<Products, D>(sums, shape, own.q, own.q_stride, first_row, place.lq, lane, room,
                            args.dq);
  }
}

template <typename Products, int D>
__global__ void __launch_bounds__(BackwardLayout<Products, D>::kThreads)
    tensor_backward(AttentionGradientArgs args) {
  const AttentionShape& shape = args.shape;
  const int heads_each = shape.heads / shape.kv_heads;
  const int of_keys = shape.kv_heads, index = static_cast<int>(blockIdx.y);
  if (index < of_keys)
    differentiate_rows<Products, D, true>(args, index * heads_each, heads_each);
  else
    differentiate_rows<Products, D, false>(args, index - of_keys, 1);
  const std::int64_t q_width = static_cast<std::int64_t>(shape.heads) * shape.d;
  const std::int64_t k_width = static_cast<std::int64_t>(shape.kv_heads) * shape.d;
  const std::int64_t k_stride = shape.k_stride != 0 ? shape.k_stride : k_width;
  clear_rows_of(shape, args.dq, shape.queries, shape.q_stride != 0 ? shape.q_stride : q_width,
                q_width);
  clear_rows_of(shape, args.dk, shape.keys, k_stride, k_width);
  clear_rows_of(shape, args.dv, shape.keys, k_stride, k_width);
}

/// False where shared memory is too small for it.
template <typename Products, int D>
bool try_tensor_backward(const AttentionGradientArgs& args, cudaStream_t on) {
  using Layout = BackwardLayout<Products, D>;
  const auto kernel = tensor_backward<Products, D>;
  if (Layout::kBytes > most_shared_memory()) return false;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Layout::kBytes);
  const unsigned of_keys = most_tiles(args.shape, true, Layout::kGroups * kTile);
  const unsigned of_queries = most_tiles(args.shape, false, Layout::kGroups * kTile);
  const dim3 grid(of_keys > of_queries ? of_keys : of_queries,
                  static_cast<unsigned>(args.shape.kv_heads + args.shape.heads));
  kernel<<<grid, Layout::kThreads, Layout::kBytes, on>>>(args);
  return true;
}
template <typename Products>
bool try_tensor_backward(const AttentionGradientArgs& args, cudaStream_t on) {
  if (args.shape.d <= 32) return try_tensor_backward<Products, 32>(args, on);
  if (args.shape.d <= 64) return try_tensor_backward<Products, 64>(args, on);
  return try_tensor_backward<Products, 128>(args, on);
}

}  // namespace lathe::engine::cuda
