// Products of matrices whose sizes a library's kernels are not made for: several at once, few rows,
// sums over many rows, and with what follows them. Large ones are cuBLASLt's (gemm.cu).
//
// A block of threads makes one tile of c, or with parts one range of its k: operands are copied
// into a ring of stages in shared memory, some ahead of the one that is multiplied, and rounded
// when they are read from there. The order of all sums follows from the sizes alone.

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kTile = 64;  // rows and columns
constexpr int kTileThreads = 128, kDepth = 16, kStages = 4;

// How an operand lies in a stage: as in memory, so that copies need no thread's help. Lines are
// apart by a size that spreads what a warp reads over all banks.
template <bool IsByK>
struct Stage {
  static constexpr int kPitch = IsByK ? kTile + 4 : kDepth + 4;
  static constexpr int kFloats = IsByK ? kDepth * kPitch : kTile * kPitch;
  static __device__ int place(int outer, int k) {
    return IsByK ? k * kPitch + outer : outer * kPitch + k;
  }
};

__device__ float number_at(const void* x, bool is_half, std::int64_t index) {
  return is_half ? __bfloat162float(static_cast<const __nv_bfloat16*>(x)[index])
                 : static_cast<const float*>(x)[index];
}

// The first `there` of four neighbours, and zeros.
__device__ float4 four_of(const void* x, bool is_half, int there, bool is_whole) {
  float values[4] = {};
  if (there == 4 && is_whole && !is_half) return *static_cast<const float4*>(x);
  if (there == 4 && is_whole) {
    const uint2 pairs = *static_cast<const uint2*>(x);
    return make_float4(__uint_as_float(pairs.x << 16), __uint_as_float(pairs.x & 0xffff0000u),
                       __uint_as_float(pairs.y << 16), __uint_as_float(pairs.y & 0xffff0000u));
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < there) values[j] = number_at(x, is_half, j);
  return make_float4(values[0], values[1], values[2], values[3]);
}

// Copies of one operand's tile: each thread has some groups of four numbers of every stage.
template <bool IsByK>
struct Copies {
  static constexpr int kCount = kTile * kDepth / 4 / kTileThreads;
  const char* from[kCount];
  bool is_half;
  int left[kCount];     // floats of the group that are there; along the outer axis
  int along_k[kCount];  // where the group begins along k
  std::int64_t step;    // from one stage to the next

  __device__ Copies(const void* x, Number as, std::int64_t stride, std::int64_t outer,
                    std::int64_t end, std::int64_t k)
      : is_half(as == Number::BF16) {
    const int bytes = is_half ? 2 : 4;
    step = (IsByK ? kDepth * stride : kDepth) * bytes;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int2 at = place(i);
      from[i] =
          static_cast<const char*>(x) +
          (IsByK ? (k + at.y) * stride + outer + at.x : (outer + at.x) * stride + k + at.y) * bytes;
      const std::int64_t rest = end - outer - at.x;
      left[i] = IsByK ? static_cast<int>(rest < 0 ? 0 : rest > 4 ? 4 : rest) : rest > 0 ? 4 : 0;
      along_k[i] = at.y;
    }
  }
  // Where group i of this thread begins: along the outer axis and along k.
  static __device__ int2 place(int i) {
    const int index = i * kTileThreads + static_cast<int>(threadIdx.x);
    return IsByK ? make_int2(index % (kTile / 4) * 4, index / (kTile / 4))
                 : make_int2(index / (kDepth / 4), index % (kDepth / 4) * 4);
  }
  // `rest`: how much of k is left from this stage on; `safe`: any address that may be read. Groups
  // that are cut are copied by hand.
  __device__ void next(float* stage, std::int64_t rest, bool is_whole, const void* safe) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int2 at = place(i);
      float* const to = stage + Stage<IsByK>::place(at.x, at.y);
      int there = left[i];
      const std::int64_t depth = rest - along_k[i];
      if (depth <= 0) there = 0;
      if (!IsByK && depth < there) there = static_cast<int>(depth < 0 ? 0 : depth);
      if (there == 0 || (is_whole && there == 4 && !is_half))
        copy_async(to, there == 0 ? safe : from[i], there != 0);
      else
        *reinterpret_cast<float4*>(to) = four_of(from[i], is_half, there, is_whole);
      from[i] += step;
    }
  }
};

// Not expanded at each of the many places of a tile: the compiler would take minutes.
__device__ __noinline__ float mapped(Map map, float x) {
  return apply(map, x, 0);
}
__device__ __noinline__ float slope_of(Map map, float x) {
  return derivative(map, x, 0);
}

// What follows a product, for `Count` neighbours of one row.
template <Precision P, int Count>
__device__ void finish(const Product& product, std::int64_t part, std::int64_t row,
                       std::int64_t column, const float* sums, std::int64_t real_rows) {
  const std::int64_t n = product.n;
  if (row >= product.m.capacity) return;
  const std::int64_t place = row * n + column;
  float c[Count], y[Count];
#pragma unroll
  for (int j = 0; j < Count; ++j) {
    c[j] = y[j] = 0;
    if (row >= real_rows || column + j >= n) continue;
    c[j] = sums[j];
    if (product.bias != nullptr) c[j] += product.bias[column + j];
    if (P == Precision::Bf16 && product.is_rounded) c[j] = round_to_bf16(c[j]);
    if (product.before != nullptr) {
      c[j] *= slope_of(product.map,
                       number_at(product.before, product.before_as == Number::BF16, place + j));
    } else if (product.y != nullptr || product.y_half != nullptr) {
      y[j] = product.map == Map::Identity ? c[j] : mapped(product.map, c[j]);
      if (product.residual != nullptr) y[j] += product.residual[place + j];
    }
  }
  const auto put = [&](float* to, const float* values) {
    if (to == nullptr) return;
    to += place;
    if (column + Count <= n && n % Count == 0) {
      if constexpr (Count == 1)
        *to = values[0];
      else
        *reinterpret_cast<float2*>(to) = make_float2(values[0], values[1]);
      return;
    }
    for (int j = 0; j < Count; ++j)
      if (column + j < n) to[j] = values[j];
  };
  const auto put_half = [&](std::uint16_t* to, const float* values) {
    if (to == nullptr) return;
    for (int j = 0; j < Count; ++j)
      if (column + j < n) to[place + j] = bf16_bits(values[j]);
  };
  put(product.c == nullptr ? nullptr : product.c + part * product.m.capacity * n, c);
  put(product.y, y);
  put_half(product.c_half, c);
  put_half(product.y_half, y);
}

struct Range {
  std::int64_t begin, end;
};

// The k of a part: ranges of whole stages.
__device__ Range range_of(const Product& product, std::int64_t part) {
  const std::int64_t k = real_size(product.k);
  const std::int64_t stages = (k + kDepth - 1) / kDepth;
  const std::int64_t begin = stages * part / product.parts * kDepth;
  const std::int64_t end = stages * (part + 1) / product.parts * kDepth;
  return {begin, end < k ? end : k};
}

// Four neighbours along k of one row of a stage.
template <bool IsByK>
__device__ void read_four(const float* stage, int outer, int k, float (&four)[4]) {
  if constexpr (IsByK) {
#pragma unroll
    for (int d = 0; d < 4; ++d) four[d] = stage[Stage<true>::place(outer, k + d)];
  } else {
    const float4 read = *reinterpret_cast<const float4*>(stage + Stage<false>::place(outer, k));
    four[0] = read.x;
    four[1] = read.y;
    four[2] = read.z;
    four[3] = read.w;
  }
}

// A thread has eight rows, eight apart, and every 16th column of the tile.
template <bool AByK, bool BByK>
__device__ void multiply_floats(const float* a, const float* b, float (&sums)[8][kTile / 16]) {
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
#pragma unroll
  for (int k = 0; k < kDepth; k += 4) {
    float left[8][4], right[kTile / 16][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) read_four<AByK>(a, row + 8 * i, k, left[i]);
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) read_four<BByK>(b, column + 16 * j, k, right[j]);
#pragma unroll
    for (int d = 0; d < 4; ++d)
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < kTile / 16; ++j) sums[i][j] = fmaf(left[i][d], right[j][d], sums[i][j]);
  }
}

// Four warps have a quarter of the tile each, in pieces of 16 x 8.
template <Precision P, bool AByK, bool BByK>
__device__ void multiply_pieces(const float* a, const float* b, float (&sums)[2][kTile / 16][4]) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int row = warp / 2 * 32 + lane / 4, column = warp % 2 * (kTile / 2) + lane / 4;
  const auto at_a = [&](int outer, int k) { return a[Stage<AByK>::place(outer, k)]; };
  const auto at_b = [&](int outer, int k) { return b[Stage<BByK>::place(outer, k)]; };
  if constexpr (P == Precision::Bf16) {
    const int k = lane % 4 * 2;
    std::uint32_t left[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int outer = row + 16 * i + part % 2 * 8, depth = k + part / 2 * 8;
        left[i][part] = to_bf16_pair(at_a(outer, depth), at_a(outer, depth + 1));
      }
#pragma unroll
    for (int j = 0; j < kTile / 16; ++j) {
      std::uint32_t right[2];
#pragma unroll
      for (int part = 0; part < 2; ++part)
        right[part] = to_bf16_pair(at_b(column + 8 * j, k + part * 8),
                                   at_b(column + 8 * j, k + part * 8 + 1));
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_bf16(sums[i][j], left[i], right);
    }
  } else {
#pragma unroll
    for (int step = 0; step < kDepth; step += 8) {
      const int k = step + lane % 4;
      std::uint32_t left[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          left[i][part] = to_tf32(at_a(row + 16 * i + part % 2 * 8, k + part / 2 * 4));
#pragma unroll
      for (int j = 0; j < kTile / 16; ++j) {
        const std::uint32_t right[2] = {to_tf32(at_b(column + 8 * j, k)),
                                        to_tf32(at_b(column + 8 * j, k + 4))};
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_tf32(sums[i][j], left[i], right);
      }
    }
  }
}

template <Precision P, bool AByK, bool BByK>
__device__ void make_tile(const Product& product, std::int64_t block, float* room) {
  using StageA = Stage<AByK>;
  using StageB = Stage<BByK>;
  constexpr int kFloats = StageA::kFloats + StageB::kFloats;
  const std::int64_t columns = (product.n + kTile - 1) / kTile;
  const std::int64_t rows = (product.m.capacity + kTile - 1) / kTile;
  const std::int64_t column = block % columns * kTile;
  const std::int64_t row = block / columns % rows * kTile;
  const std::int64_t part = block / columns / rows;
  const std::int64_t real_rows = real_size(product.m);
  const Range range = range_of(product, part);
  const std::int64_t a_stride = AByK ? product.m.capacity : product.k.capacity;
  const std::int64_t b_stride = BByK ? product.n : product.k.capacity;
  const bool a_is_whole = a_stride % 4 == 0, b_is_whole = b_stride % 4 == 0;
  constexpr bool kIsFloat = P == Precision::Float32;
  float sums[kIsFloat ? 8 : 1][kIsFloat ? kTile / 16 : 1] = {};
  float pieces[kIsFloat ? 1 : 2][kIsFloat ? 1 : kTile / 16][4] = {};
  const bool adds_a = AByK && product.sums != nullptr && column == 0;
  float a_sum = 0;
  const std::int64_t stages = row < real_rows && range.begin < range.end
                                  ? (range.end - range.begin + kDepth - 1) / kDepth
                                  : 0;
  Copies<AByK> a(product.a, product.a_as, a_stride, row, real_rows, range.begin);
  Copies<BByK> b(product.b, product.b_as, b_stride, column, product.n, range.begin);
  const auto copy = [&](std::int64_t stage) {
    if (stage < stages) {
      float* const to = room + stage % kStages * kFloats;
      const std::int64_t rest = range.end - range.begin - stage * kDepth;
      a.next(to, rest, a_is_whole, product.a);
      b.next(to + StageA::kFloats, rest, b_is_whole, product.b);
    }
    commit_copies();
  };
  for (int stage = 0; stage < kStages - 1; ++stage) copy(stage);
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    copy(stage + kStages - 1);
    const float* const left = room + stage % kStages * kFloats;
    const float* const right = left + StageA::kFloats;
    if constexpr (kIsFloat)
      multiply_floats<AByK, BByK>(left, right, sums);
    else
      multiply_pieces<P, AByK, BByK>(left, right, pieces);
    if (adds_a && threadIdx.x < kTile)
      for (int k = 0; k < kDepth; ++k) a_sum += left[StageA::place(threadIdx.x, k)];
  }
  if (adds_a && threadIdx.x < kTile && row + threadIdx.x < product.m.capacity)
    product.sums[part * product.m.capacity + row + threadIdx.x] = a_sum;
  if constexpr (kIsFloat) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < kTile / 16; ++j)
        finish<P, 1>(product, part, row + threadIdx.x / 16 + 8 * i,
                     column + threadIdx.x % 16 + 16 * j, sums[i] + j, real_rows);
  } else {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < kTile / 16; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          finish<P, 2>(product, part, row + warp / 2 * 32 + 16 * i + 8 * half + lane / 4,
                       column + warp % 2 * (kTile / 2) + 8 * j + lane % 4 * 2,
                       pieces[i][j] + 2 * half, real_rows);
  }
}

// Few rows: tiles of 16 x 16, so that there are many of them; sixteen threads have four rows and
// four columns each, and all such groups share the k, whose sums are then added in order.
constexpr int kSmall = 16, kSmallDepth = 128, kSmallPitch = kSmallDepth + 4;
constexpr int kSmallFloats = 2 * kSmall * kSmallPitch;

// A thread's share of an operand on its way into the stage.
template <Precision P>
struct SmallCopies {
  static constexpr int kCount = kSmall * kSmallDepth / 4 / kTileThreads;
  float values[kCount][4];

  __device__ static int2 place(int i, bool is_by_k) {
    const int index = i * kTileThreads + static_cast<int>(threadIdx.x);
    return is_by_k ? make_int2(index % (kSmall / 4) * 4, index / (kSmall / 4))
                   : make_int2(index / (kSmallDepth / 4), index % (kSmallDepth / 4) * 4);
  }
  __device__ void load(const void* x, Number as, bool is_by_k, std::int64_t stride,
                       std::int64_t outer, std::int64_t outer_end, std::int64_t k,
                       std::int64_t k_end) {
    const bool is_half = as == Number::BF16;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int2 at = place(i, is_by_k);
      const std::int64_t o = outer + at.x, d = k + at.y;
      const std::int64_t rest = is_by_k ? outer_end - o : k_end - d;
      const bool is_there = is_by_k ? d < k_end : o < outer_end;
      const int there = !is_there || rest <= 0 ? 0 : rest < 4 ? static_cast<int>(rest) : 4;
      const float4 four =
          four_of(static_cast<const char*>(x) +
                      (is_by_k ? d * stride + o : o * stride + d) * (is_half ? 2 : 4),
                  is_half, there, stride % 4 == 0);
      values[i][0] = four.x;
      values[i][1] = four.y;
      values[i][2] = four.z;
      values[i][3] = four.w;
    }
  }
  __device__ void store(float* stage, bool is_by_k) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int2 at = place(i, is_by_k);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int outer = is_by_k ? at.x + j : at.x, k = is_by_k ? at.y : at.y + j;
        stage[outer * kSmallPitch + k] = seen<P>(values[i][j]);
      }
    }
  }
};

template <Precision P>
__device__ void make_small_tile(const Product& product, std::int64_t block, float* room) {
  const std::int64_t columns = (product.n + kSmall - 1) / kSmall;
  const std::int64_t column = block % columns * kSmall, row = block / columns * kSmall;
  const std::int64_t real_rows = real_size(product.m), k_end = product.k.capacity;
  const std::int64_t a_stride = product.k.capacity;
  const std::int64_t b_stride = product.b_by_k ? product.n : product.k.capacity;
  constexpr int kGroups = kTileThreads / 16, kGroupDepth = kSmallDepth / kGroups;
  const int group = threadIdx.x / 16, member = threadIdx.x % 16;
  float* const a = room;
  float* const b = room + kSmall * kSmallPitch;
  float sums[4][4] = {};
  SmallCopies<P> a_copies, b_copies;
  const auto load = [&](std::int64_t k) {
    a_copies.load(product.a, product.a_as, false, a_stride, row, real_rows, k, k_end);
    b_copies.load(product.b, product.b_as, product.b_by_k, b_stride, column, product.n, k, k_end);
  };
  if (row < real_rows) load(0);
  for (std::int64_t k = 0; k < k_end && row < real_rows; k += kSmallDepth) {
    a_copies.store(a, false);
    b_copies.store(b, product.b_by_k);
    __syncthreads();
    if (k + kSmallDepth < k_end) load(k + kSmallDepth);
#pragma unroll 1
    for (int d = group * kGroupDepth; d < (group + 1) * kGroupDepth; d += 4) {
      float4 left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left[i] = *reinterpret_cast<const float4*>(a + (member / 4 * 4 + i) * kSmallPitch + d);
        right[i] = *reinterpret_cast<const float4*>(b + (member % 4 * 4 + i) * kSmallPitch + d);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sums[i][j] = fmaf(left[i].x, right[j].x, sums[i][j]);
          sums[i][j] = fmaf(left[i].y, right[j].y, sums[i][j]);
          sums[i][j] = fmaf(left[i].z, right[j].z, sums[i][j]);
          sums[i][j] = fmaf(left[i].w, right[j].w, sums[i][j]);
        }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      room[group * kSmall * kSmall + (member / 4 * 4 + i) * kSmall + member % 4 * 4 + j] =
          sums[i][j];
  __syncthreads();
  if (threadIdx.x >= kSmall * kSmall / 2) return;
  float two[2] = {};
  for (int g = 0; g < kGroups; ++g)
    for (int j = 0; j < 2; ++j) two[j] += room[g * kSmall * kSmall + threadIdx.x * 2 + j];
  finish<P, 2>(product, 0, row + threadIdx.x / 8, column + threadIdx.x % 8 * 2, two, real_rows);
}

template <Precision P>
__global__ void __launch_bounds__(kTileThreads, 4) products_kernel(ProductArgs args) {
  constexpr int kLargest = 2 * Stage<false>::kFloats;
  constexpr int kFloats = kStages * kLargest > kSmallFloats ? kStages * kLargest : kSmallFloats;
  __shared__ __align__(16) float room[kFloats];
  constexpr int kWords = sizeof(Product) / sizeof(std::uint32_t);
  __shared__ __align__(16) std::uint32_t words[kWords];
  int index = 0;
  while (index + 1 < args.count && args.products[index + 1].first_block <= blockIdx.x) ++index;
  // Its fields come together, not one by one as they are needed.
  for (int i = threadIdx.x; i < kWords; i += kTileThreads)
    words[i] = reinterpret_cast<const std::uint32_t*>(args.products + index)[i];
  __syncthreads();
  const Product& product = *reinterpret_cast<const Product*>(words);
  const std::int64_t block = blockIdx.x - product.first_block;
  if (has_small_tiles(product))
    make_small_tile<P>(product, block, room);
  else if (product.a_by_k)
    make_tile<P, true, true>(product, block, room);
  else if (product.b_by_k)
    make_tile<P, false, true>(product, block, room);
  else
    make_tile<P, false, false>(product, block, room);
}

template <Precision P>
void launch(const ProductArgs& args, cudaStream_t stream) {
  products_kernel<P><<<static_cast<unsigned>(args.num_blocks), kTileThreads, 0, stream>>>(args);
}

// 32 threads have four sums each, eight shares of the parts beside each other.
constexpr int kShares = 8;
__global__ void add_parts_kernel(AddPartsArgs args) {
  __shared__ float room[kShares][kPartsBlock];
  int low = 0, high = args.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (args.sums[middle].first_block <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  const SummedParts sum = args.sums[low];
  const std::int64_t first = (blockIdx.x - sum.first_block) * kPartsBlock;
  const int lane = threadIdx.x, share = threadIdx.y;
  const int begin = sum.num_parts * share / kShares, end = sum.num_parts * (share + 1) / kShares;
  const std::int64_t at = first + lane * 4;
  float total[4] = {};
  if (sum.count % 4 == 0 && at < sum.count) {
#pragma unroll 4
    for (int part = begin; part < end; ++part) {
      const float4 four = *reinterpret_cast<const float4*>(sum.parts + part * sum.count + at);
      total[0] += four.x;
      total[1] += four.y;
      total[2] += four.z;
      total[3] += four.w;
    }
  } else {
    for (int part = begin; part < end; ++part)
      for (int j = 0; j < 4; ++j)
        if (at + j < sum.count) total[j] += sum.parts[part * sum.count + at + j];
  }
  for (int j = 0; j < 4; ++j) room[share][lane * 4 + j] = total[j];
  __syncthreads();
  const int column = share * kWarp + lane;
  if (column >= kPartsBlock || first + column >= sum.count) return;
  float y = 0;
  for (int s = 0; s < kShares; ++s) y += room[s][column];
  sum.y[first + column] = y;
}

}  // namespace

void products(const ProductArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  switch (args.precision) {
    case Precision::Float32:
      return launch<Precision::Float32>(args, stream_of(stream));
    case Precision::Tf32:
      return launch<Precision::Tf32>(args, stream_of(stream));
    case Precision::Bf16:
      return launch<Precision::Bf16>(args, stream_of(stream));
  }
}

void add_parts(const AddPartsArgs& args, Stream* stream) {
  if (args.num_blocks == 0) return;
  add_parts_kernel<<<static_cast<unsigned>(args.num_blocks), dim3(kWarp, kShares), 0,
                     stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
