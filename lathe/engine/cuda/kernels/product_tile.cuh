#pragma once

// One tile of a product, or with parts one range of its k, made by a block of threads.

#include "lathe/engine/cuda/kernels/product_float.cuh"
#include "lathe/engine/cuda/kernels/product_tensor.cuh"

namespace lathe::engine::cuda {

/// The sizes of a tile and who multiplies it.
template <Precision TilePrecision, int TileRows, int TileColumns, int TileDepth, int TileStages,
          typename TileMultiplier>
struct Tiling {
  static constexpr Precision P = TilePrecision;
  static constexpr int kRows = TileRows, kColumns = TileColumns;
  static constexpr int kDepth = TileDepth, kStages = TileStages;
  using Multiplier = TileMultiplier;
  static constexpr int kThreads = Multiplier::kThreads;
  using Element = typename StageElement<P>::Type;
  template <bool IsByK, int Tile>
  using StageOf =
      Stage<Element, IsByK, Tile, kDepth, IsByK ? Multiplier::kPaddingByK : Multiplier::kPadding>;
  template <bool IsByK, int Tile>
  using CopiesOf = StageCopies<Element, IsByK, Tile, kDepth,
                               IsByK ? Multiplier::kPaddingByK : Multiplier::kPadding, kThreads>;
  static constexpr int kPitch = kColumns + 8;  // of the sums on their way to memory
  template <int Tile>
  static constexpr int kLargest = StageOf<true, Tile>::kElements > StageOf<false, Tile>::kElements
                                      ? StageOf<true, Tile>::kElements
                                      : StageOf<false, Tile>::kElements;
  static constexpr int kStageBytes =
      kStages * (kLargest<kRows> + kLargest<kColumns>)*static_cast<int>(sizeof(Element));
  static constexpr int kSumBytes =
      Multiplier::kShares * kRows * kPitch * static_cast<int>(sizeof(float));
  static constexpr int kBytes = kStageBytes > kSumBytes ? kStageBytes : kSumBytes;
};

struct Range {
  int begin, end;
};

/// The k of a part: ranges of whole stages.
static __device__ Range range_of(const Product& product, int part, int depth) {
  const int k = static_cast<int>(real_size(product.k));
  if (product.parts == 1) return {0, k};
  const auto stages = static_cast<unsigned>((k + depth - 1) / depth);
  const auto parts = static_cast<unsigned>(product.parts), index = static_cast<unsigned>(part);
  const int begin = static_cast<int>(stages * index / parts) * depth;
  const int end = static_cast<int>(stages * (index + 1) / parts) * depth;
  return {begin, end < k ? end : k};
}

static __device__ float number_of(float value) {
  return value;
}
static __device__ float number_of(std::uint16_t bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}

template <typename T, bool AByK, bool BByK>
__device__ void make_tile(const Product& product, int block, void* shared) {
  using Element = typename T::Element;
  using StageA = typename T::template StageOf<AByK, T::kRows>;
  using StageB = typename T::template StageOf<BByK, T::kColumns>;
  constexpr int kElements = StageA::kElements + StageB::kElements;
  Element* const room = static_cast<Element*>(shared);
  const auto columns = static_cast<unsigned>((product.n + T::kColumns - 1) / T::kColumns);
  const auto rows = static_cast<unsigned>((product.m.capacity + T::kRows - 1) / T::kRows);
  const auto index = static_cast<unsigned>(block);
  const int column = static_cast<int>(index % columns) * T::kColumns;
  const std::int64_t row =
      std::int64_t{product.parts == 1 ? index / columns : index / columns % rows} * T::kRows;
  const int part = product.parts == 1 ? 0 : static_cast<int>(index / columns / rows);
  // Rows beyond the real ones are read all the same, so that copies do not wait for their number:
  // what becomes of them is not written.
  const std::int64_t real_rows = real_size(product.m);
  const Range range = range_of(product, part, T::kDepth);
  const int depth = range.begin < range.end ? range.end - range.begin : 0;
  typename T::template CopiesOf<AByK, T::kRows> a(product.a, product.a_as,
                                                  AByK ? product.m.capacity : product.k.capacity,
                                                  row, product.m.capacity, range.begin);
  typename T::template CopiesOf<BByK, T::kColumns> b(product.b, product.b_as,
                                                     BByK ? product.n : product.k.capacity, column,
                                                     product.n, range.begin);
  Element *to = room, *const end = room + T::kStages * kElements;
  int rest = depth;
  const auto copy = [&] {
    if (rest > 0) {
      a.next(to, rest);
      b.next(to + StageA::kElements, rest);
      rest -= T::kDepth;
      to = to + kElements == end ? room : to + kElements;
    }
    commit_copies();
  };
  // Sums of a over k: threads beside each other have neighbouring rows, and shares of the depth.
  constexpr int kShares = T::kThreads > T::kRows ? T::kThreads / T::kRows : 1;
  static_assert(!AByK || T::kThreads >= T::kRows);
  const bool adds_a = AByK && product.sums != nullptr && column == 0;
  const int sum_row = threadIdx.x % T::kRows, share = threadIdx.x / T::kRows;
  float a_sum = 0;
  typename T::Multiplier tile;
#pragma unroll 1
  for (int stage = 0; stage < T::kStages - 1; ++stage) copy();
  const int stages = row < real_rows ? (depth + T::kDepth - 1) / T::kDepth : 0;
  const Element* left = room;
#pragma unroll 1
  for (int stage = 0; stage < stages; ++stage) {
    wait_for_copies<T::kStages - 2>();
    __syncthreads();
    copy();
    tile.template multiply<StageA, StageB, AByK, BByK>(left, left + StageA::kElements);
    if (AByK && adds_a) {
#pragma unroll 4
      for (int k = share; k < T::kDepth; k += kShares)
        a_sum += number_of(left[StageA::place(sum_row, k)]);
    }
    left = left + kElements == end ? room : left + kElements;
  }
  wait_for_copies<0>();
  __syncthreads();
  float* const sums = static_cast<float*>(shared);
  if (AByK && adds_a) {
    sums[threadIdx.x] = a_sum;
    __syncthreads();
    if (threadIdx.x < T::kRows && row + sum_row < product.m.capacity) {
      for (int s = 1; s < kShares; ++s) a_sum += sums[s * T::kRows + sum_row];
      product.sums[part * product.m.capacity + row + sum_row] = a_sum;
    }
    __syncthreads();
  }
  tile.template store<AByK, BByK, T::kPitch>(sums);
  __syncthreads();
  finish_tile<T::P, T::kRows, T::kColumns, T::kPitch, T::Multiplier::kShares, T::kThreads>(
      product, part, real_rows, row, column, sums);
}

}  // namespace lathe::engine::cuda
