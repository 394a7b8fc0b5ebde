#pragma once

// Tiles in shared memory and their products by tensor cores, a warp at a time.
//
// A product adds to a matrix of 16 rows and 8 columns whose element (g, 2 t + i) is number i of
// lane 4 g + t, and (g + 8, 2 t + i) number 2 + i. Its operands are 32 bytes deep, whatever the
// element: 16 numbers of bfloat16 or 8 of TF32. So rows are read by the same instruction in both
// (ldmatrix moves 8 rows of 16 bytes), and only what goes across the rows differs: a struct for
// each precision says how.
//
// Chunks of 16 bytes are exchanged by the row's number, so that 8 rows of one chunk lie in
// different banks. TF32 has no instruction that crosses rows and columns, so where rows go across,
// the numbers are crossed when they are rounded.

#include "lathe/engine/cuda/kernels/attention_scores.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {

inline constexpr int kTensorThreads = 128;  // four warps, 16 rows of 64 each
using Fragment = std::uint32_t[4];
using Accumulator = float[4];

/// Where chunk `chunk` of a row lies in a tile of so many rows of `Width` numbers. Rows of more
/// than 128 bytes are cut into slabs, which lie one after the other.
template <typename Element, int Width, int Rows>
__device__ int chunk_at(int row, int chunk) {
  constexpr int kEach = 16 / static_cast<int>(sizeof(Element));
  constexpr int kChunks = Width / kEach;
  if constexpr (kChunks > 8)
    return (chunk / 8 * Rows + row) * 8 * kEach + (chunk % 8 ^ (row & 7)) * kEach;
  const int exchange = row / (8 / min(kChunks, 8)) & (kChunks - 1);
  return row * Width + (chunk ^ exchange) * kEach;
}

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ inline void load_matrices(const void* row, Fragment& to) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}
__device__ inline void load_matrices_across(const void* row, Fragment& to) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}

struct Bf16Products {
  using Element = __nv_bfloat16;
  static constexpr int kStep = 16;
  /// Whether rows that go across, as right operands, lie crossed in a tile of their own.
  static constexpr bool kCrosses = false;

  __device__ static void multiply(const Fragment& a, std::uint32_t b0, std::uint32_t b1,
                                  Accumulator& sum) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  __device__ static std::uint32_t pack(float low, float high) {
    std::uint32_t result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
  }
  /// Columns step * kStep and on of a result, as the left operand of the next product.
  __device__ static void take(const Accumulator* sums, int step, Fragment& a) {
    a[0] = pack(sums[2 * step][0], sums[2 * step][1]);
    a[1] = pack(sums[2 * step][2], sums[2 * step][3]);
    a[2] = pack(sums[2 * step + 1][0], sums[2 * step + 1][1]);
    a[3] = pack(sums[2 * step + 1][2], sums[2 * step + 1][3]);
  }
  /// Rows step * kStep and on of a tile as right operands for 16 of its columns: b[0] and b[1] are
  /// for the first eight.
  template <int D, int Rows>
  __device__ static void load_across(const Element* tile, int step, int columns, int lane,
                                     Fragment& b) {
    const int row = step * kStep + lane % 16, chunk = columns * 2 + lane / 16;
    load_matrices_across(tile + chunk_at<Element, D, Rows>(row, chunk), b);
  }
  /// 16 rows of a result, as they are.
  template <int D>
  __device__ static void keep(const Accumulator (&sums)[D / 8], int lane, Element* rows) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<std::uint32_t*>(rows + chunk_at<Element, D, 16>(g + 8 * half, n) +
                                          2 * t) = pack(sums[n][2 * half], sums[n][2 * half + 1]);
  }
  /// Which row and chunk of a tile a thread copies the `time`-th time.
  template <int D, int Rows, int Count>
  __device__ static void find(int thread, int time, int& row, int& chunk) {
    row = thread / (D / 8) + time * (Count / (D / 8));
    chunk = thread % (D / 8);
  }
  /// All is rounded when it arrives.
  template <int D, int Rows, int Count>
  __device__ static void settle(const float*, Element*, Element*, int) {}
};

struct Tf32Products {
  using Element = float;
  static constexpr int kStep = 8;
  static constexpr bool kCrosses = true;

  __device__ static void multiply(const Fragment& a, std::uint32_t b0, std::uint32_t b1,
                                  Accumulator& sum) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  __device__ static std::uint32_t rounded(float x) {
    std::uint32_t result;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
    return result;
  }
  // Lane t has columns 2 t and 2 t + 1 of a result, but t and t + 4 of an operand. A sum does not
  // mind: what crosses rows takes them in the same order.
  __device__ static void take(const Accumulator* sums, int step, Fragment& a) {
    a[0] = rounded(sums[step][0]);
    a[1] = rounded(sums[step][2]);
    a[2] = rounded(sums[step][1]);
    a[3] = rounded(sums[step][3]);
  }
  /// Of a crossed tile, D rows of numbers of `Rows` rows.
  template <int D, int Rows>
  __device__ static void load_across(const Element* crossed, int step, int columns, int lane,
                                     Fragment& b) {
    const int row = columns * 16 + lane % 8 + lane / 16 * 8, chunk = step * 2 + lane / 8 % 2;
    load_matrices(crossed + chunk_at<Element, Rows, D>(row, chunk), b);
  }
  /// A warp copies two chunks of 16 rows: the numbers of one column that it crosses then lie in
  /// different banks.
  template <int D, int Rows, int Count>
  __device__ static void find(int thread, int time, int& row, int& chunk) {
    static_assert(Count / kWarp % (Rows / 16) == 0);
    const int lane = thread % kWarp, run = thread / kWarp;
    row = run % (Rows / 16) * 16 + lane % 16;
    chunk = run / (Rows / 16) * 2 + lane / 16 + time * (Count / kWarp / (Rows / 16) * 2);
  }
  /// Rounds what this thread has copied, raw or to the tile itself, and crosses it; either tile may
  /// be null.
  template <int D, int Rows, int Count>
  __device__ static void settle(const float* raw, Element* tile, Element* crossed, int thread) {
#pragma unroll 2
    for (int time = 0; time < Rows * (D / 4) / Count; ++time) {
      int row, chunk;
      find<D, Rows, Count>(thread, time, row, chunk);
      const int at = chunk_at<Element, D, Rows>(row, chunk);
      const float* const from = raw != nullptr ? raw + (thread + time * Count) * 4 : tile + at;
      float4 x = *reinterpret_cast<const float4*>(from);
      x.x = __uint_as_float(rounded(x.x));
      x.y = __uint_as_float(rounded(x.y));
      x.z = __uint_as_float(rounded(x.z));
      x.w = __uint_as_float(rounded(x.w));
      if (tile != nullptr) *reinterpret_cast<float4*>(tile + at) = x;
      if (crossed == nullptr) continue;
      // In the order in which `take` has columns.
      const int place = row / 8 * 8 + row % 2 * 4 + row % 8 / 2;
      const float four[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int e = 0; e < 4; ++e)
        crossed[chunk_at<Element, Rows, D>(chunk * 4 + e, place / 4) + place % 4] = four[e];
    }
  }
};

__device__ inline float element_at(const void* rows, bool is_bf16, std::int64_t place) {
  return is_bf16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(rows)[place])
                 : static_cast<const float*>(rows)[place];
}

/// Rows [begin, begin + Rows) of one head, which begin at element `start`, into shared memory by
/// `Count` threads; zeros where there are none. The caller closes the copies, waits for them, and
/// settles the tile with the same threads. TF32 goes to `raw` where it is crossed, else `raw` is
/// null. `AsKeys`: in the order of key_of_row.
///
/// What has no whole chunks goes number by number, in a loop: a kernel's first run through its code
/// waits for each line of it, so that seldom cases must not be between the others.
template <typename Products, int D, int Rows, int Count, bool AsKeys = false>
__device__ void load_tile(const void* from, bool is_bf16, std::int64_t start, std::int64_t stride,
                          int begin, int length, int d, int thread,
                          typename Products::Element* tile, float* raw) {
  using Element = typename Products::Element;
  constexpr int kEach = 16 / static_cast<int>(sizeof(Element)), kChunks = D / kEach;
  constexpr int kTimes = Rows * kChunks / Count;
  static_assert(Rows * kChunks % Count == 0);
  const bool is_same = is_bf16 == (sizeof(Element) == 2);
  const bool is_even = d % 8 == 0 && stride % 8 == 0;
  const std::int64_t first = start + begin * stride;
  if (is_even && is_same) {
#pragma unroll
    for (int time = 0; time < kTimes; ++time) {
      int row, chunk;
      Products::template find<D, Rows, Count>(thread, time, row, chunk);
      const int from_row = AsKeys ? key_of_row(row) : row;
      const bool is_there = begin + from_row < length && chunk * kEach < d;
      const std::int64_t place = is_there ? first + from_row * stride + chunk * kEach : start;
      void* to = tile + chunk_at<Element, D, Rows>(row, chunk);
      if (Products::kCrosses && raw != nullptr) to = raw + (thread + time * Count) * kEach;
      copy_ahead(to, static_cast<const Element*>(from) + place, is_there);
    }
    return;
  }
  if constexpr (sizeof(Element) == 2) {
    if (is_even) {
#pragma unroll
      for (int time = 0; time < kTimes; ++time) {
        int row, chunk;
        Products::template find<D, Rows, Count>(thread, time, row, chunk);
        const int from_row = AsKeys ? key_of_row(row) : row;
        float4 low = make_float4(0, 0, 0, 0), high = low;
        if (begin + from_row < length && chunk * kEach < d) {
          const auto* const place = reinterpret_cast<const float4*>(
              static_cast<const float*>(from) + first + from_row * stride + chunk * kEach);
          low = place[0];
          high = place[1];
        }
        *reinterpret_cast<uint4*>(tile + chunk_at<Element, D, Rows>(row, chunk)) =
            make_uint4(Products::pack(low.x, low.y), Products::pack(low.z, low.w),
                       Products::pack(high.x, high.y), Products::pack(high.z, high.w));
      }
      return;
    }
  }
#pragma unroll 1
  for (int i = 0; i < kTimes * kEach; ++i) {
    int row, chunk;
    Products::template find<D, Rows, Count>(thread, i / kEach, row, chunk);
    const int column = chunk * kEach + i % kEach, from_row = AsKeys ? key_of_row(row) : row;
    const float number = begin + from_row < length && column < d
                             ? element_at(from, is_bf16, first + from_row * stride + column)
                             : 0.0f;
    if (Products::kCrosses && raw != nullptr)
      raw[(thread + i / kEach * Count) * kEach + i % kEach] = number;
    else
      tile[chunk_at<Element, D, Rows>(row, chunk) + i % kEach] = Element(number);
  }
}

/// 16 rows of a tile as left operands, those of one step.
template <typename Products, int D>
__device__ void load_left(const typename Products::Element* tile, int row, int step, int lane,
                          Fragment& a) {
  load_matrices(
      tile + chunk_at<typename Products::Element, D, kTile>(row + lane % 16, step * 2 + lane / 16),
      a);
}

/// sums = 16 rows of one tile by the 8 N rows of another.
template <typename Products, int D, int N>
__device__ void multiply_tiles(const typename Products::Element* left, int first_row,
                               const typename Products::Element* right, int lane,
                               Accumulator (&sums)[N]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[n][i] = 0;
#pragma unroll
  for (int step = 0; step < D / Products::kStep; ++step) {
    Fragment a;
    load_left<Products, D>(left, first_row, step, lane, a);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      Fragment b;
      const int row = n * 8 + lane % 8 + lane / 16 * 8, chunk = step * 2 + lane / 8 % 2;
      load_matrices(right + chunk_at<typename Products::Element, D, 8 * N>(row, chunk), b);
      Products::multiply(a, b[0], b[1], sums[n]);
      Products::multiply(a, b[2], b[3], sums[n + 1]);
    }
  }
}

/// sums += weights, as left operands of some steps, by the rows of a tile, or of a crossed one.
template <typename Products, int D, int Steps>
__device__ void add_weighted(const Fragment (&weights)[Steps],
                             const typename Products::Element* tile, int lane,
                             Accumulator (&sums)[D / 8]) {
#pragma unroll
  for (int step = 0; step < Steps; ++step)
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      Fragment b;
      Products::template load_across<D, Steps * Products::kStep>(tile, step, n / 2, lane, b);
      Products::multiply(weights[step], b[0], b[1], sums[n]);
      Products::multiply(weights[step], b[2], b[3], sums[n + 1]);
    }
}

/// Writes a warp's 16 rows from row `begin` of a head on, those below `length`. Whole chunks of
/// bfloat16 go through `room` for 16 rows first, so that rows are written side by side.
template <typename Products, int D>
__device__ void store_tile(const Accumulator (&sums)[D / 8], const AttentionShape& shape,
                           std::int64_t start, std::int64_t stride, int begin, int length, int lane,
                           typename Products::Element* room, void* rows) {
  using Element = typename Products::Element;
  const bool is_bf16 = shape.elements == Number::BF16;
  const bool rounds = shape.precision == Precision::Bf16;
  if constexpr (sizeof(Element) == 2) {
    if (is_bf16 && shape.d % 8 == 0 && stride % 8 == 0) {
      __syncwarp();
      Products::template keep<D>(sums, lane, room);
      __syncwarp();
#pragma unroll 1
      for (int i = lane; i < 16 * (D / 8); i += kWarp) {
        const int row = i / (D / 8), chunk = i % (D / 8);
        if (begin + row < length && chunk * 8 < shape.d)
          *reinterpret_cast<uint4*>(static_cast<Element*>(rows) + start + (begin + row) * stride +
                                    chunk * 8) =
              *reinterpret_cast<const uint4*>(room + chunk_at<Element, D, 16>(row, chunk));
      }
      return;
    }
  }
  const bool is_even = shape.d % 2 == 0 && stride % 2 == 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = begin + lane / 4 + half * 8;
    if (row >= length) continue;
    const std::int64_t first = start + row * stride + lane % 4 * 2;
    const int left = shape.d - lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float one = sums[n][2 * half], other = sums[n][2 * half + 1];
      if (is_bf16) {
        auto* const to = static_cast<__nv_bfloat16*>(rows) + first + n * 8;
        if (n * 8 < left) to[0] = __float2bfloat16_rn(one);
        if (n * 8 + 1 < left) to[1] = __float2bfloat16_rn(other);
        continue;
      }
      auto* const to = static_cast<float*>(rows) + first + n * 8;
      const float2 both =
          rounds ? make_float2(round_to_bf16(one), round_to_bf16(other)) : make_float2(one, other);
      if (is_even) {
        if (n * 8 < left) *reinterpret_cast<float2*>(to) = both;
        continue;
      }
      if (n * 8 < left) to[0] = both.x;
      if (n * 8 + 1 < left) to[1] = both.y;
    }
  }
}

/// Clears rows of either element beyond the real ones.
__device__ inline void clear_rows_of(const AttentionShape& shape, void* rows, const Extent& extent,
                                     std::int64_t stride, std::int64_t width) {
  if (shape.elements == Number::BF16)
    clear_rows(static_cast<__nv_bfloat16*>(rows), extent, stride, width);
  else
    clear_rows(static_cast<float*>(rows), extent, stride, width);
}

}  // namespace lathe::engine::cuda
