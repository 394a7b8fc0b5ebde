#pragma once

// What follows a product: bias, rounding, an activation or its slope, and the writes in float and
// bfloat16.

#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {

// Not expanded at each of their places: the compiler would take minutes. GELU is, for every
// transformer has it.
static __device__ __noinline__ float mapped(Map map, float x) {
  return apply(map, x, 0);
}
static __device__ __noinline__ float slope_of(Map map, float x) {
  return derivative(map, x, 0);
}
static __device__ void map_four(Map map, const float (&x)[4], float (&y)[4]) {
  if (map == Map::GeluErf) {
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = apply(Map::GeluErf, x[j], 0);
  } else if (map != Map::Identity) {
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = mapped(map, x[j]);
  }
}
static __device__ void multiply_by_slopes(Map map, const float (&x)[4], float (&c)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j)
    c[j] *= map == Map::GeluErf ? derivative(Map::GeluErf, x[j], 0) : slope_of(map, x[j]);
}

/// The fields of a product that its results need, in registers: read from the product itself, every
/// store would have them read again, for what they are in might have changed.
struct Ending {
  __device__ Ending(const Product& product, std::int64_t part, std::int64_t number_of_rows)
      : bias(product.bias),
        before(product.before),
        c(product.c == nullptr ? nullptr : product.c + part * product.m.capacity * product.n),
        y(product.y),
        c_half(product.c_half),
        y_half(product.y_half),
        n(static_cast<int>(product.n)),
        rows(product.m.capacity),
        real_rows(number_of_rows),
        map(product.map),
        is_rounded(product.is_rounded),
        bias_is_half(product.bias_as == Number::BF16),
        before_is_half(product.before_as == Number::BF16),
        is_mapped(product.before == nullptr && (product.y != nullptr || product.y_half != nullptr)),
        is_whole(product.n % 4 == 0) {}
  const void *bias, *before;
  float *c, *y;
  std::uint16_t *c_half, *y_half;
  int n;
  std::int64_t rows, real_rows;
  Map map;
  bool is_rounded, bias_is_half, before_is_half, is_mapped;
  bool is_whole;  // rows are made of whole groups of four
};

/// The first `there` of four neighbours, and zeros; all at once where rows allow it.
static __device__ float4 four_floats(const float* x, int there, bool is_whole) {
  if (is_whole && there == 4) return *reinterpret_cast<const float4*>(x);
  return make_float4(there > 0 ? x[0] : 0.0f, there > 1 ? x[1] : 0.0f, there > 2 ? x[2] : 0.0f,
                     there > 3 ? x[3] : 0.0f);
}
static __device__ float4 four_halves(const std::uint16_t* x, int there, bool is_whole) {
  const auto number = [](std::uint32_t bits) { return __uint_as_float(bits << 16); };
  if (is_whole && there == 4) {
    const uint2 pairs = *reinterpret_cast<const uint2*>(x);
    return make_float4(number(pairs.x), __uint_as_float(pairs.x & 0xffff0000u), number(pairs.y),
                       __uint_as_float(pairs.y & 0xffff0000u));
  }
  return make_float4(there > 0 ? number(x[0]) : 0.0f, there > 1 ? number(x[1]) : 0.0f,
                     there > 2 ? number(x[2]) : 0.0f, there > 3 ? number(x[3]) : 0.0f);
}

static __device__ float4 four_numbers(const void* x, bool is_half, std::int64_t place, int there,
                                      bool is_whole) {
  return is_half ? four_halves(static_cast<const std::uint16_t*>(x) + place, there, is_whole)
                 : four_floats(static_cast<const float*>(x) + place, there, is_whole);
}

static __device__ void put_four(float* to, const float* values, int there, bool is_whole) {
  if (is_whole && there == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < there) to[j] = values[j];
}
static __device__ void put_four(std::uint16_t* to, const float* values, int there, bool is_whole) {
  if (is_whole && there == 4) {
    *reinterpret_cast<uint2*>(to) =
        make_uint2(to_bf16_pair(values[0], values[1]), to_bf16_pair(values[2], values[3]));
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < there) to[j] = bf16_bits(values[j]);
}

/// What four neighbours of a row need from memory, asked for before any of them is written.
template <bool IsInside>
__device__ float4 other_of(const Ending& ending, std::int64_t place, int there) {
  const bool is_whole = IsInside || ending.is_whole;
  if (ending.before != nullptr)
    return four_numbers(ending.before, ending.before_is_half, place, there, is_whole);
  return make_float4(0, 0, 0, 0);
}

/// Ends four neighbours of a row, of which `there` lie in it.
template <Precision P, bool IsInside>
__device__ void finish(const Ending& ending, std::int64_t place, int there, bool is_real,
                       float4 sums, float4 bias_four, float4 other_four) {
  float c[4] = {sums.x + bias_four.x, sums.y + bias_four.y, sums.z + bias_four.z,
                sums.w + bias_four.w};
  const float other[4] = {other_four.x, other_four.y, other_four.z, other_four.w};
  if (P == Precision::Bf16 && ending.is_rounded)
#pragma unroll
    for (int j = 0; j < 4; ++j) c[j] = round_to_bf16(c[j]);
  float y[4] = {c[0], c[1], c[2], c[3]};
  if (ending.before != nullptr) {
    multiply_by_slopes(ending.map, other, c);
  } else if (ending.is_mapped) {
    map_four(ending.map, c, y);
  }
  if (!IsInside && !is_real)
#pragma unroll
    for (int j = 0; j < 4; ++j) c[j] = y[j] = 0;
  const bool is_whole = IsInside || ending.is_whole;
  if (ending.c != nullptr) put_four(ending.c + place, c, there, is_whole);
  if (ending.y != nullptr) put_four(ending.y + place, y, there, is_whole);
  if (ending.c_half != nullptr) put_four(ending.c_half + place, c, there, is_whole);
  if (ending.y_half != nullptr) put_four(ending.y_half + place, y, there, is_whole);
}

/// Ends the rows of a tile whose sums lie in shared memory, `Pitch` floats from row to row, in as
/// many shares as there are, one behind the other. A thread has four columns and every so many-th
/// row. Tiles that lie inside of all that is real have no more to ask.
template <Precision P, int Rows, int Columns, int Pitch, int Shares, int Threads, bool IsInside>
__device__ void finish_rows(const Ending& ending, std::int64_t row, int column, const float* sums) {
  constexpr int kGroups = Columns / 4, kStep = Threads / kGroups;
  static_assert(Threads % kGroups == 0);
  const int first = static_cast<int>(threadIdx.x) / kGroups;
  const int across = static_cast<int>(threadIdx.x) % kGroups * 4;
  const int left = ending.n - column - across;
  const int there = IsInside || left > 4 ? 4 : left;
  if (there <= 0) return;
  float4 bias = make_float4(0, 0, 0, 0);
  if (ending.bias != nullptr) {
    bias = four_numbers(ending.bias, ending.bias_is_half, column + across, there,
                        IsInside || ending.is_whole);
    if (P == Precision::Bf16 && ending.is_rounded)
      bias = make_float4(round_to_bf16(bias.x), round_to_bf16(bias.y), round_to_bf16(bias.z),
                         round_to_bf16(bias.w));
  }
  const std::int64_t step = std::int64_t{kStep} * ending.n;
  row += first;
  std::int64_t place = row * ending.n + column + across;
  sums += first * Pitch + across;
  // Not unrolled: code that is not in the instruction cache yet costs more than waiting for what is
  // asked for one row ahead.
  const auto other_at = [&](int i, std::int64_t at) {
    const bool is_real = i < Rows && (IsInside || row + i - first < ending.real_rows);
    return is_real ? other_of<IsInside>(ending, at, there) : make_float4(0, 0, 0, 0);
  };
  float4 other = other_at(first, place);
#pragma unroll 1
  for (int i = first; i < Rows; i += kStep, sums += kStep * Pitch, place += step) {
    const float4 next = other_at(i + kStep, place + step);
    float4 four = *reinterpret_cast<const float4*>(sums);
#pragma unroll
    for (int share = 1; share < Shares; ++share) {
      const float4 more = *reinterpret_cast<const float4*>(sums + share * Rows * Pitch);
      four = make_float4(four.x + more.x, four.y + more.y, four.z + more.z, four.w + more.w);
    }
    const std::int64_t at = row + i - first;
    if (IsInside || at < ending.rows)
      finish<P, IsInside>(ending, place, there, at < ending.real_rows, four, bias, other);
    other = next;
  }
}

template <Precision P, int Rows, int Columns, int Pitch, int Shares, int Threads>
__device__ void finish_tile(const Product& product, std::int64_t part, std::int64_t real_rows,
                            std::int64_t row, int column, const float* sums) {
  const Ending ending(product, part, real_rows);
  if (ending.is_whole && row + Rows <= ending.real_rows && column + Columns <= ending.n)
    finish_rows<P, Rows, Columns, Pitch, Shares, Threads, true>(ending, row, column, sums);
  else
    finish_rows<P, Rows, Columns, Pitch, Shares, Threads, false>(ending, row, column, sums);
}

}  // namespace lathe::engine::cuda
