#pragma once

// The numbers that a lane has of a row in a chain: eight neighbours, how they come from memory, are
// dropped, and are left.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda::row_chains {

using Source = RowSource::Kind;

struct Eight {
  float v[8];
};
template <typename Function>
__device__ void change(Eight& x, Function function) {
#pragma unroll
  for (int j = 0; j < 8; ++j) x.v[j] = function(x.v[j], j);
}

/// Some lanes of a warp, or several warps.
template <int Lanes, int Threads>
struct Team {
  static __device__ int rank() { return static_cast<int>(threadIdx.x) % Lanes; }
  static __device__ int number() { return static_cast<int>(threadIdx.x) / Lanes; }

  /// The sums over the lanes, in an order that depends on nothing.
  template <int Count>
  static __device__ void join(float (&values)[Count]) {
#pragma unroll
    for (int distance = (Lanes < kWarp ? Lanes : kWarp) / 2; distance > 0; distance /= 2)
#pragma unroll
      for (int i = 0; i < Count; ++i) values[i] += __shfl_xor_sync(kAllLanes, values[i], distance);
    if constexpr (Lanes > kWarp) {
      constexpr int kWarps = Lanes / kWarp;
      __shared__ float room[Threads / Lanes][Count][kWarps];
      const int team = number();
      if (threadIdx.x % kWarp == 0)
#pragma unroll
        for (int i = 0; i < Count; ++i) room[team][i][rank() / kWarp] = values[i];
      wait();
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        values[i] = room[team][i][0];
#pragma unroll
        for (int warp = 1; warp < kWarps; ++warp) values[i] += room[team][i][warp];
      }
      wait();  // before the next ones are written
    }
  }
  static __device__ void wait() {
    asm volatile("bar.sync %0, %1;" ::"r"(number() + 1), "n"(Lanes) : "memory");
  }
};

__device__ inline std::int64_t token_of(const RowSource& source, std::int64_t sequence) {
  const std::int64_t begin = integer_at(source.ids, sequence);
  const std::int64_t end = integer_at(source.ids, sequence + 1);
  const std::int64_t token = (source.index < 0 ? end : begin) + source.index;
  return token < 0 || token < begin || token >= end ? -1 : token;
}

/// The sequence whose token the row is; -1: none. All lanes of a warp look for those of its teams.
template <int Lanes>
__device__ std::int64_t sequence_of(const RowSource& source, std::int64_t row) {
  constexpr int kStep = Lanes < kWarp ? Lanes : kWarp;
  constexpr unsigned kMask = kStep == kWarp ? kAllLanes : (1u << kStep % kWarp) - 1;
  const std::int64_t count = real_size(source.others);
  const int lane = static_cast<int>(threadIdx.x) % kStep;
  const int shift = static_cast<int>(threadIdx.x) % kWarp / kStep * kStep;
  std::int64_t sequence = -1;
  for (std::int64_t first = 0; first < count; first += kStep) {
    const bool is_it = first + lane < count && token_of(source, first + lane) == row;
    const unsigned found = __ballot_sync(kAllLanes, is_it) >> shift & kMask;
    if (sequence < 0 && found != 0) sequence = first + __ffs(static_cast<int>(found)) - 1;
  }
  return sequence;
}

/// The row of memory that a source has for a row where tokens and sequences meet; -1: none. A call,
/// because a chain has many sources, and code costs more where it is fetched than where it is run.
template <int Lanes>
__device__ __noinline__ std::int64_t row_beside(const RowSource& source, std::int64_t row) {
  if (source.kind == Source::ForToken) return sequence_of<Lanes>(source, row);
  const std::int64_t token = token_of(source, row);
  return token < real_size(source.others) ? token : -1;
}
template <int Lanes>
__device__ std::int64_t looked_up_row(const RowSource& source, std::int64_t row) {
  if (source.kind != Source::Table) return row_beside<Lanes>(source, row);
  const std::int64_t id = integer_at(source.ids, row);
  return id >= 0 && id < source.table_rows ? id : -1;
}

/// What has been asked for.
struct Fetched {
  uint4 low = {}, high = {};
};

/// Of a row, or where it is looked up of the nearest real one; -1: there is none.
template <typename K>
__device__ Fetched fetch(const RowSource& source, std::int64_t row, std::int64_t real_row,
                         int column, int n) {
  Fetched fetched;
  std::int64_t from = row;
  if (K::kIsGeneral && source.kind >= Source::Table) {
    if (real_row < 0) return fetched;
    from = looked_up_row<K::kLanes>(source, real_row);
    if (from < 0) {
      if (source.kind == Source::ForToken) return fetched;
      // NaN, so that no optimizer moves before the fault is seen.
      report(source.fault);
      constexpr std::uint32_t kNan = 0x7fc00000u;
      fetched.low = fetched.high = make_uint4(kNan, kNan, kNan, kNan);
      return fetched;
    }
  }
  if (column >= n) return fetched;
  const std::int64_t at = from * n + column;
  if (source.kind == Source::Half) {
    fetched.low =
        *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(source.memory) + at);
  } else {
    const auto* const x =
        reinterpret_cast<const uint4*>(static_cast<const float*>(source.memory) + at);
    fetched.low = x[0];
    fetched.high = x[1];
  }
  return fetched;
}

__device__ inline Eight numbers_of(const RowSource& source, const Fetched& fetched) {
  const std::uint32_t low[4] = {fetched.low.x, fetched.low.y, fetched.low.z, fetched.low.w};
  const std::uint32_t high[4] = {fetched.high.x, fetched.high.y, fetched.high.z, fetched.high.w};
  Eight x;
  if (source.kind == Source::Half) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x.v[2 * j] = __uint_as_float(low[j] << 16);
      x.v[2 * j + 1] = __uint_as_float(low[j] & 0xffff0000u);
    }
    return x;
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) x.v[j] = __uint_as_float(j < 4 ? low[j] : high[j - 4]);
  return x;
}

__device__ inline Eight vector(const float* x, int column, int n) {
  Eight eight = {};
  if (x == nullptr || column >= n) return eight;
  *reinterpret_cast<float4*>(eight.v) = *reinterpret_cast<const float4*>(x + column);
  *reinterpret_cast<float4*>(eight.v + 4) = *reinterpret_cast<const float4*>(x + column + 4);
  return eight;
}

/// A row as dropout knows it.
struct Place {
  std::uint32_t example = 0, position = 0;
};
__device__ inline Place place_of(const RowDropout& dropout, std::int64_t row) {
  if (!dropout.is_there) return {};
  return {static_cast<std::uint32_t>(integer_at(dropout.examples, row)),
          static_cast<std::uint32_t>(integer_at(dropout.positions, row))};
}
__device__ inline void drop(const RowDropout& dropout, ops::DropoutStream stream,
                            const Place& place, Eight& x, int column) {
  stream.site = dropout.site;
  const PhiloxCounter bits = ops::row_dropout_block(stream, place.example, place.position,
                                                    static_cast<std::uint32_t>(column / 8));
  // A product, not a choice: what is not a number stays that where it is dropped too.
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t own = bits[j / 2] >> (16 * (j % 2)) & 0xffffu;
    x.v[j] *= own < dropout.threshold ? 0.0f : dropout.scale;
  }
}

/// Where results of a row go, and what they are added to.
struct Results {
  std::int64_t place;
  bool is_left;  // else nothing may be left of it
  Eight* sums;

  __device__ void leave(const RowResult& result, const Eight& x) const {
    if (is_left && result.y != nullptr) {
      *reinterpret_cast<float4*>(result.y + place) = *reinterpret_cast<const float4*>(x.v);
      *reinterpret_cast<float4*>(result.y + place + 4) = *reinterpret_cast<const float4*>(x.v + 4);
    }
    if (is_left && result.half != nullptr)
      *reinterpret_cast<uint4*>(result.half + place) =
          make_uint4(to_bf16_pair(x.v[0], x.v[1]), to_bf16_pair(x.v[2], x.v[3]),
                     to_bf16_pair(x.v[4], x.v[5]), to_bf16_pair(x.v[6], x.v[7]));
    if (sums != nullptr && result.sums != nullptr) add(*sums, x);
  }
  __device__ void add(Eight& to, const Eight& x) const {
    if (is_left) change(to, [&](float value, int j) { return value + x.v[j]; });
  }
};

}  // namespace lathe::engine::cuda::row_chains
