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
// different banks.

#include "lathe/engine/cuda/kernels/attention.cuh"

namespace lathe::engine::cuda {

inline constexpr int kTensorThreads = 128;  // four warps, 16 rows of 64 each
using Fragment = std::uint32_t[4];
using Accumulator = float[4];

template <typename Element, int Width>
__device__ int chunk_at(int row, int chunk) {
  constexpr int kEach = 16 / static_cast<int>(sizeof(Element));
  constexpr int kChunks = Width / kEach;
  const int exchange = kChunks >= 8 ? row & 7 : row / (8 / kChunks) & (kChunks - 1);
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
  template <int Width>
  __device__ static void load_across(const Element* tile, int step, int columns, int lane,
                                     Fragment& b) {
    const int row = step * kStep + lane % 16, chunk = columns * 2 + lane / 16;
    load_matrices_across(tile + chunk_at<Element, Width>(row, chunk), b);
  }
  /// A result of 16 keys and 8 N queries, as [keys][queries]; or any 16 rows, as they are.
  template <int Queries, int N>
  __device__ static void keep_across(const Accumulator (&sums)[N], int key, int lane,
                                     Element* tile) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<std::uint32_t*>(tile + chunk_at<Element, Queries>(key + g + 8 * half, n) +
                                          2 * t) = pack(sums[n][2 * half], sums[n][2 * half + 1]);
  }
  /// Of what keep_across has kept: 16 queries from `query` on by the keys of a step, as a left
  /// operand.
  template <int Queries>
  __device__ static void load_kept(const Element* tile, int query, int step, int lane,
                                   Fragment& a) {
    const int key = step * kStep + lane % 8 + lane / 16 * 8;
    load_matrices_across(tile + chunk_at<Element, Queries>(key, query / 8 + lane / 8 % 2), a);
  }
  /// Rounds the chunks that this thread has copied.
  __device__ static void settle(Element* tile, const float* raw, int chunks, int thread,
                                int count) {
    if (raw == nullptr) return;
#pragma unroll 4
    for (int i = thread; i < chunks; i += count) {
      const float4 low = reinterpret_cast<const float4*>(raw)[2 * i];
      const float4 high = reinterpret_cast<const float4*>(raw)[2 * i + 1];
      uint4 chunk;
      chunk.x = pack(low.x, low.y);
      chunk.y = pack(low.z, low.w);
      chunk.z = pack(high.x, high.y);
      chunk.w = pack(high.z, high.w);
      reinterpret_cast<uint4*>(tile)[i] = chunk;
    }
  }
};

struct Tf32Products {
  using Element = float;
  static constexpr int kStep = 8;

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
  template <int Width>
  __device__ static void load_across(const Element* tile, int step, int columns, int lane,
                                     Fragment& b) {
    const int g = lane / 4, row = step * kStep + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int chunk = columns * 4 + i / 2 * 2 + g / 4;
      b[i] = __float_as_uint(tile[chunk_at<Element, Width>(row + i % 2, chunk) + g % 4]);
    }
  }
  template <int Queries, int N>
  __device__ static void keep_across(const Accumulator (&sums)[N], int key, int lane,
                                     Element* tile) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = n * 8 + 2 * t + i % 2, chunk = (key + i / 2 * 8) / 4 + g % 2;
        tile[chunk_at<Element, kTile>(row, chunk) + g / 2] = __uint_as_float(rounded(sums[n][i]));
      }
  }
  template <int Queries>
  __device__ static void load_kept(const Element* tile, int query, int step, int lane,
                                   Fragment& a) {
    const int row = query + lane % 16, chunk = step * 2 + lane / 16;
    load_matrices(tile + chunk_at<Element, kTile>(row, chunk), a);
  }
  __device__ static void settle(Element* tile, const float*, int chunks, int thread, int count) {
    for (int i = thread; i < chunks; i += count) {
      float4* const chunk = reinterpret_cast<float4*>(tile) + i;
      float4 x = *chunk;
      x.x = __uint_as_float(rounded(x.x));
      x.y = __uint_as_float(rounded(x.y));
      x.z = __uint_as_float(rounded(x.z));
      x.w = __uint_as_float(rounded(x.w));
      *chunk = x;
    }
  }
};

__device__ inline float element_at(const void* rows, bool is_bf16, std::int64_t place) {
  return is_bf16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(rows)[place])
                 : static_cast<const float*>(rows)[place];
}

/// Whether rows come as float and are rounded to bfloat16 on their way, whole chunks at a time:
/// they are copied ahead as they are, to a place of their own, and rounded when they have arrived.
template <typename Products>
__host__ __device__ bool comes_raw(const AttentionShape& shape) {
  return sizeof(typename Products::Element) == 2 && shape.elements == Number::F32 &&
         shape.d % 8 == 0 && shape.q_stride % 4 == 0 && shape.k_stride % 4 == 0;
}

/// Rows [begin, begin + Rows) of one head, which begin at element `start`, into shared memory;
/// zeros where there are none. The caller closes the copies, waits for them, and settles the tile
/// with the same threads. `raw` has room for as many floats, or is null.
template <typename Products, int D, int Rows>
__device__ void load_tile(const void* from, bool is_bf16, std::int64_t start, std::int64_t stride,
                          int begin, int length, int d, int thread, int count,
                          typename Products::Element* tile, float* raw) {
  using Element = typename Products::Element;
  constexpr int kEach = 16 / static_cast<int>(sizeof(Element)), kChunks = D / kEach;
  const bool is_same = is_bf16 == (sizeof(Element) == 2);
  const bool is_even = d % 8 == 0 && stride % 8 == 0;
  // Thread i copies what lies at chunk i: settling relies on it.
#pragma unroll 4
  for (int i = thread; i < Rows * kChunks; i += count) {
    const int row = i / kChunks;
    Element* const to = tile + i * kEach;
    const int chunk = (chunk_at<Element, D>(row, i % kChunks) - row * D) / kEach;
    const bool is_there = begin + row < length && chunk * kEach < d;
    const std::int64_t place = start + (begin + row) * stride + chunk * kEach;
    if (is_same && is_even) {
      copy_ahead(to, static_cast<const Element*>(from) + (is_there ? place : start), is_there);
      continue;
    }
    const float* const floats = static_cast<const float*>(from) + (is_there ? place : start);
    if (raw != nullptr) {
      copy_ahead(raw + i * kEach, floats, is_there);
      copy_ahead(raw + i * kEach + 4, floats + 4, is_there);
      continue;
    }
    alignas(16) Element numbers[kEach];
    if (!is_bf16 && sizeof(Element) == 2 && is_even) {
      float4 low = make_float4(0, 0, 0, 0), high = low;
      if (is_there) {
        low = *reinterpret_cast<const float4*>(floats);
        high = *reinterpret_cast<const float4*>(floats + 4);
      }
      const float eight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int e = 0; e < kEach; ++e) numbers[e] = Element(eight[e]);
    } else {
#pragma unroll
      for (int e = 0; e < kEach; ++e)
        numbers[e] = Element(
            is_there && chunk * kEach + e < d ? element_at(from, is_bf16, place + e) : 0.0f);
    }
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(numbers);
  }
}

/// 16 rows of a tile as left operands, those of one step.
template <typename Products, int D>
__device__ void load_left(const typename Products::Element* tile, int row, int step, int lane,
                          Fragment& a) {
  load_matrices(
      tile + chunk_at<typename Products::Element, D>(row + lane % 16, step * 2 + lane / 16), a);
}

/// sums[strip][n] += left[strip] by rows 8 n and on of a tile, for one step.
template <typename Products, int D, int N, int Strips>
__device__ void add_step(const Fragment (&left)[Strips], const typename Products::Element* tile,
                         int step, int lane, Accumulator (&sums)[Strips][N]) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    Fragment right;
    const int row = n * 8 + lane % 8 + lane / 16 * 8, chunk = step * 2 + lane / 8 % 2;
    load_matrices(tile + chunk_at<typename Products::Element, D>(row, chunk), right);
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) {
      Products::multiply(left[strip], right[0], right[1], sums[strip][n]);
      Products::multiply(left[strip], right[2], right[3], sums[strip][n + 1]);
    }
  }
}

/// sums = 16 rows of one tile by the 8 N rows of another.
template <typename Products, int D, int N>
__device__ void multiply_tiles(const typename Products::Element* left, int row,
                               const typename Products::Element* right, int lane,
                               Accumulator (&sums)[1][N]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[0][n][i] = 0;
#pragma unroll
  for (int step = 0; step < D / Products::kStep; ++step) {
    Fragment a[1];
    load_left<Products, D>(left, row, step, lane, a[0]);
    add_step<Products, D, N, 1>(a, right, step, lane, sums);
  }
}

/// sums += weights, of 8 K columns, by the rows of a tile.
template <typename Products, int D, int K, int Strips>
__device__ void add_weighted(const Accumulator (&weights)[Strips][K],
                             const typename Products::Element* tile, int lane,
                             Accumulator (&sums)[Strips][D / 8]) {
#pragma unroll
  for (int step = 0; step < K * 8 / Products::kStep; ++step) {
    Fragment a[Strips];
#pragma unroll
    for (int strip = 0; strip < Strips; ++strip) Products::take(weights[strip], step, a[strip]);
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      Fragment b;
      Products::template load_across<D>(tile, step, n / 2, lane, b);
#pragma unroll
      for (int strip = 0; strip < Strips; ++strip) {
        Products::multiply(a[strip], b[0], b[1], sums[strip][n]);
        Products::multiply(a[strip], b[2], b[3], sums[strip][n + 1]);
      }
    }
  }
}

/// Writes two neighbours of a row; those from d on are left out.
__device__ inline void store_two(void* rows, bool is_bf16, bool rounds, std::int64_t place,
                                 float first, float second, int left) {
  if (left <= 0) return;
  if (is_bf16) {
    auto* const to = static_cast<__nv_bfloat16*>(rows) + place;
    if (left > 1 && place % 2 == 0) {
      *reinterpret_cast<std::uint32_t*>(to) = Bf16Products::pack(first, second);
      return;
    }
    to[0] = __float2bfloat16_rn(first);
    if (left > 1) to[1] = __float2bfloat16_rn(second);
    return;
  }
  auto* const to = static_cast<float*>(rows) + place;
  store(to, first, rounds);
  if (left > 1) store(to + 1, second, rounds);
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
      Products::template keep_across<D>(sums, 0, lane, room);
      __syncwarp();
      for (int i = lane; i < 16 * (D / 8); i += kWarp) {
        const int row = i / (D / 8), chunk = i % (D / 8);
        if (begin + row < length && chunk * 8 < shape.d)
          *reinterpret_cast<uint4*>(static_cast<Element*>(rows) + start + (begin + row) * stride +
                                    chunk * 8) =
              *reinterpret_cast<const uint4*>(room + chunk_at<Element, D>(row, chunk));
      }
      return;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = begin + lane / 4 + half * 8;
    if (row >= length) continue;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      store_two(rows, is_bf16, rounds, start + row * stride + column, sums[n][2 * half],
                sums[n][2 * half + 1], shape.d - column);
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
