// Products of few rows with a packed weight, which is read once and never written unpacked.
//
// One row (kMostVectorRows): a lane keeps the 16 bytes' worth of activations that it needs in
// registers and goes down the rows of the weight; products are those of floats.
//
// More rows: a block of warps takes some outputs, 16 for each tile of tensor cores, and all of
// their inputs: the warps share the inputs, each adds up what it has read, and the sums are joined
// in order. A code is exact in bfloat16, an activation is the sum of up to three bfloat16 terms,
// each of which is a column of the product; so products are exact and only sums round. Lanes read
// 16 bytes of a row each, four lanes 64 neighbouring ones: a chunk. The tensor cores sum over the
// four lanes, so what they sum at once must share a scale. Where a chunk has several groups, lanes
// exchange words until a word's number says which group it is of.

#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/packed_codes.cuh"
#include "lathe/numerics/codecs/integer_codec.h"

namespace lathe::engine::cuda {
namespace {

constexpr int kTileRows = 16, kTileColumns = 8;  // of a tensor core's result
constexpr int kChunkWords = 16;                  // of four lanes
// Vectors: rows at most, warps of a block, outputs of a warp, inputs of a lane.
constexpr int kMostVectorRows = 1, kVectorWarps = 8, kVectorOutputs = 8, kVectorNumbers = 16;
constexpr int kVectorRoom = kVectorWarps * kVectorOutputs * kMostVectorRows;  // for sums
constexpr __host__ __device__ int num_slices(std::int64_t k) {
  constexpr int kSlice = kWarp * kVectorNumbers;
  return static_cast<int>((k + kSlice - 1) / kSlice);
}

// Words of four lanes, exchanged so that word i of each is of group i * kGroups / 4.
template <int kGroups>
__device__ void exchange_words(Word (&words)[4], int lane) {
  if constexpr (kGroups == 4) {
    const bool is_odd = (lane & 1) != 0;
    const Word a = __shfl_xor_sync(kAllLanes, is_odd ? words[0] : words[1], 1);
    const Word b = __shfl_xor_sync(kAllLanes, is_odd ? words[2] : words[3], 1);
    (is_odd ? words[0] : words[1]) = a;
    (is_odd ? words[2] : words[3]) = b;
  }
  if constexpr (kGroups >= 2) {
    const bool is_high = (lane & 2) != 0;
    const Word a = __shfl_xor_sync(kAllLanes, is_high ? words[0] : words[2], 2);
    const Word b = __shfl_xor_sync(kAllLanes, is_high ? words[1] : words[3], 2);
    (is_high ? words[0] : words[2]) = a;
    (is_high ? words[1] : words[3]) = b;
  }
}
// Which of the chunk's words is then word i of a lane.
__device__ int word_of_chunk(int groups, int lane, int i) {
  const int t = lane % 4;
  if (groups == 4) return 4 * i + t;
  if (groups == 2) return 4 * (i / 2 * 2 + t % 2) + t / 2 * 2 + i % 2;
  return 4 * t + i;
}

__device__ void multiply_add(float (&sums)[4], const Word (&a)[4], Word b0, Word b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void multiply_add_32(int (&sums)[4], const Word (&a)[4], Word b0, Word b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void multiply_add_16(int (&sums)[4], Word a0, Word a1, Word b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(b));
}

// What a block computes: its warps' tiles.
struct Shape {
  int outputs, columns, warps;
};

// What a launch needs beside its arguments.
struct Layout {
  const void* columns = nullptr;         // activations: see arrange_kernel; or codes, [rows, k]
  const float* column_scales = nullptr;  // of codes: [rows, groups]
  int terms = 1;                         // columns of a row of x
  int rows_at_once = 1;                  // rows of x that a block takes
  int group = 0, groups = 0;             // inputs of a scale, scales of an output
  int stride = 0;                        // between outputs' scales in shared memory
  std::int64_t fewest = 0, most = 0;     // rows that the launch is for: another has the others
};

__device__ float output_scale(const PackedMatrix& weight, std::int64_t index) {
  const QuantizeArgs& format = weight.format;
  switch (format.rule) {
    case ScaleBy::SharedExponent:
      return numerics::SharedExponent::scale(weight.local[index]) * format.element_step;
    case ScaleBy::GivenPowerOfTwo:
      return nearest_power_of_two(format.scales[index]) * format.element_step;
    case ScaleBy::LargestMagnitude:
      return reinterpret_cast<const float*>(weight.local)[index] * format.element_step;
    case ScaleBy::Given:
      return format.scales[index] * format.element_step;
    default:
      return format.element_step;
  }
}

// 128 + a zero point, twice.
__device__ Word zero_pair(float zero) {
  return Word{__bfloat16_as_ushort(__float2bfloat16_rn(128.0f + rintf(zero)))} * 0x00010001u;
}

// SharedExponent::scale without a loop or a call.
__device__ float exponent_scale(Word code) {
  const Word bits = code == 0 ? Word{0x00400000} : code << 23;
  return __uint_as_float(code == numerics::SharedExponent::kNanCode ? numerics::kNanBits : bits);
}

// The scales of a block's outputs as floats, and behind them 128 + their zero points as pairs.
// There are as many as a fraction of the codes, so a thread asks for several before it waits for
// one: exponents by four, and all that there is no quick way for one by one. Outputs beyond the
// last have scales of others; nobody reads their sums.
template <bool kHasZero>
__device__ void stage_scales(const PackedLinearArgs& args, const Layout& layout, int first_output,
                             int outputs, float* scales) {
  constexpr int kAtOnce = 8;
  const QuantizeArgs& format = args.weight.format;
  const std::int64_t first = std::int64_t{first_output} * layout.groups;
  const int real = static_cast<int>(min(std::int64_t{outputs}, args.n - first_output));
  const int count = real * layout.groups, threads = static_cast<int>(blockDim.x);
  const auto place = [&](int i) { return i / layout.groups * layout.stride + i % layout.groups; };
  if (format.rule == ScaleBy::SharedExponent && !kHasZero && layout.groups % 4 == 0) {
    const auto* const from = reinterpret_cast<const Word*>(args.weight.local + first);
    for (int i = threadIdx.x; i < count / 4; i += threads * kAtOnce) {
      Word read[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) read[j] = __ldg(from + min(i + j * threads, count / 4 - 1));
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j * threads >= count / 4) break;
        float* const to = scales + place(4 * (i + j * threads));
#pragma unroll
        for (int byte = 0; byte < 4; ++byte)
          to[byte] = exponent_scale(read[j] >> (8 * byte) & 0xff) * format.element_step;
      }
    }
    return;
  }
  if (format.rule == ScaleBy::Given && !format.has_one_scale) {
    for (int i = threadIdx.x; i < count; i += threads * kAtOnce) {
      float read[kAtOnce], zeros[kAtOnce] = {};
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t at = first + min(i + j * threads, count - 1);
        read[j] = __ldg(format.scales + at);
        if (kHasZero && format.zeros != nullptr) zeros[j] = __ldg(format.zeros + at);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j * threads >= count) break;
        const int to = place(i + j * threads);
        scales[to] = read[j] * format.element_step;
        if (kHasZero) scales[outputs * layout.stride + to] = __uint_as_float(zero_pair(zeros[j]));
      }
    }
    return;
  }
  for (int i = threadIdx.x; i < count; i += threads) {
    const std::int64_t index = format.has_one_scale ? 0 : first + i;
    scales[place(i)] = output_scale(args.weight, index);
    if (kHasZero)
      scales[outputs * layout.stride + place(i)] =
          __uint_as_float(zero_pair(format.zeros == nullptr ? 0.0f : format.zeros[index]));
  }
}

__device__ void words_of(const uint4& four, Word* words) {
  words[0] = four.x;
  words[1] = four.y;
  words[2] = four.z;
  words[3] = four.w;
}

// Makes sums[0] of each lane the sum over all lanes of one of them and says which: half of the
// sums go to the lane that is so far away, until one is left.
template <int kCount>
__device__ int join_lanes(float (&sums)[kCount], int lane) {
  int place = 0;
#pragma unroll
  for (int distance = kWarp / 2, left = kCount; distance > 0; distance /= 2) {
    if (left == 1) {
      sums[0] += __shfl_xor_sync(kAllLanes, sums[0], distance);
      continue;
    }
    left /= 2;
    const bool is_high = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < left; ++i) {
      const float sent = is_high ? sums[i] : sums[left + i];
      sums[i] = (is_high ? sums[left + i] : sums[i]) + __shfl_xor_sync(kAllLanes, sent, distance);
    }
    if (is_high) place += left;
  }
  return place;
}

// The bits of a number's term 0, 1 or 2: what bfloat16 leaves of it, of the rest, of that rest.
__device__ std::uint16_t term_of(float number, int term) {
  __nv_bfloat16 part = __float2bfloat16_rn(number);
  for (int i = 0; i < term; ++i) {
    number -= __bfloat162float(part);
    // Infinity less infinity: the first term says it all.
    part = __float2bfloat16_rn(isnan(number) ? 0.0f : number);
  }
  return __bfloat16_as_ushort(part);
}

// Where the sums of a block's warps lie.
__device__ int sum_place(const Shape& block, int warp, int column, int output) {
  return (warp * block.columns + column) * (block.outputs + 1) + output;
}

// What becomes of a sum. A function of its own: the maps would be compiled into every kernel.
__device__ __noinline__ void finish(const PackedLinearArgs& args, std::int64_t row,
                                    std::int64_t output, float sum, bool is_real) {
  if (output >= args.n) return;
  const std::int64_t at = row * args.n + output;
  if (!is_real) {
    args.y[at] = 0;
    return;
  }
  if (args.bias != nullptr) sum += args.bias[output];
  if (args.precision == Precision::Bf16) sum = __bfloat162float(__float2bfloat16_rn(sum));
  sum = apply(args.map, sum, 0);
  args.y[at] = args.residual == nullptr ? sum : sum + args.residual[at];
}

// Joins the warps' sums and the terms of each row, the smallest first, and finishes the rows.
__device__ __noinline__ void write_outputs(const PackedLinearArgs& args, const Layout& layout,
                                           const Shape block, std::int64_t first_row,
                                           std::int64_t real, const float* sums) {
  const int rows =
      static_cast<int>(min(std::int64_t{layout.rows_at_once}, args.rows.capacity - first_row));
  for (int i = threadIdx.x; i < rows * block.outputs; i += blockDim.x) {
    const int row = i / block.outputs, output = i % block.outputs;
    float sum = 0;
    if (first_row + row < real)
      for (int term = layout.terms - 1; term >= 0; --term)
        for (int warp = 0; warp < block.warps; ++warp)
          sum += sums[sum_place(block, warp, row * layout.terms + term, output)];
    finish(args, first_row + row, std::int64_t{blockIdx.x} * block.outputs + output, sum,
           first_row + row < real);
  }
}

// kGroups: of a chunk, at most 4. kTilesM and kTilesN: tiles of a warp. kAhead: chunks that a warp
// asks for before it needs the first.
template <typename Codes, int kGroups, int kTilesM, int kTilesN, int kWarps, int kAhead>
__global__ void __launch_bounds__(kWarps* kWarp)
    packed_linear_kernel(const __grid_constant__ PackedLinearArgs args,
                         const __grid_constant__ Layout layout) {
  constexpr int kChunk = kChunkWords * Codes::kCodes, kOutputs = kTileRows * kTilesM;
  constexpr int kColumns = kTileColumns * kTilesN, kPairs = Codes::kCodes / 2;
  constexpr Shape kBlock{kOutputs, kColumns, kWarps};
  extern __shared__ float room[];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int g = lane / 4, t = lane % 4;  // what a lane has of a tile: row g, and g + 8; columns 2t
  const int first_output = static_cast<int>(blockIdx.x) * kOutputs;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * layout.rows_at_once;
  const std::int64_t real = real_size(args.rows);
  if (real < layout.fewest || real > layout.most) return;
  if (first_row >= real) return write_outputs(args, layout, kBlock, first_row, real, room);

  const int chunks = static_cast<int>(args.k) / kChunk;
  const std::uint8_t* codes[kTilesM][2];
#pragma unroll
  for (int m = 0; m < kTilesM; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t output = first_output + m * kTileRows + half * 8 + g;
      codes[m][half] = args.weight.codes + min(output, args.n - 1) * args.weight.row_bytes + t * 16;
    }
  const uint4* const columns =
      static_cast<const uint4*>(layout.columns) +
      (std::int64_t{blockIdx.y} * chunks * kTilesN * kWarp + lane) * kPairs;
  uint4 read[kAhead][kTilesM][2], x[kAhead][kTilesN][kPairs];
  const auto load = [&](int first) {
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int chunk = first + ahead * kWarps;
      if (chunk >= chunks) break;
#pragma unroll
      for (int m = 0; m < kTilesM; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          read[ahead][m][half] = load_once(codes[m][half] + chunk * 64);
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
#pragma unroll
        for (int i = 0; i < kPairs; ++i)
          x[ahead][n][i] = __ldg(columns + (chunk * kTilesN + n) * (kWarp * kPairs) + i);
    }
  };
  load(warp);
  stage_scales<Codes::kHasZero>(args, layout, first_output, kOutputs, room);
  __syncthreads();

  float sums[kTilesM][kTilesN][4] = {};
  for (int first = warp; first < chunks; first += kWarps * kAhead) {
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const int chunk = first + ahead * kWarps;
      if (chunk >= chunks) break;
      Word words[kTilesM][2][4];
#pragma unroll
      for (int m = 0; m < kTilesM; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          words_of(read[ahead][m][half], words[m][half]);
          exchange_words<kGroups>(words[m][half], lane);
        }
      Word b[kTilesN][4 * kPairs];
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
#pragma unroll
        for (int i = 0; i < kPairs; ++i) words_of(x[ahead][n][i], b[n] + 4 * i);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const int scale_at = (chunk * kChunk + group * (kChunk / kGroups)) / layout.group;
        float group_sums[kTilesM][kTilesN][4] = {};
#pragma unroll
        for (int i = group * 4 / kGroups; i < (group + 1) * 4 / kGroups; ++i)
#pragma unroll
          for (int m = 0; m < kTilesM; ++m) {
            Word zeros[2] = {};
            if constexpr (Codes::kHasZero)
#pragma unroll
              for (int half = 0; half < 2; ++half)
                zeros[half] = __float_as_uint(
                    room[(kOutputs + m * kTileRows + half * 8 + g) * layout.stride + scale_at]);
            Word low[kPairs], high[kPairs];
            Codes::convert(words[m][0][i], zeros[0], low);
            Codes::convert(words[m][1][i], zeros[1], high);
#pragma unroll
            for (int pair = 0; pair < kPairs; pair += 2) {
              const Word a[4] = {low[pair], high[pair], low[pair + 1], high[pair + 1]};
#pragma unroll
              for (int n = 0; n < kTilesN; ++n)
                multiply_add(group_sums[m][n], a, b[n][i * kPairs + pair],
                             b[n][i * kPairs + pair + 1]);
            }
          }
#pragma unroll
        for (int m = 0; m < kTilesM; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float scale = room[(m * kTileRows + half * 8 + g) * layout.stride + scale_at];
#pragma unroll
            for (int n = 0; n < kTilesN; ++n)
#pragma unroll
              for (int i = 2 * half; i < 2 * half + 2; ++i)
                sums[m][n][i] = fmaf(group_sums[m][n][i], scale, sums[m][n][i]);
          }
      }
    }
    load(first + kWarps * kAhead);
  }
  __syncthreads();  // the scales' room is free
#pragma unroll
  for (int m = 0; m < kTilesM; ++m)
#pragma unroll
    for (int n = 0; n < kTilesN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        room[sum_place(kBlock, warp, n * kTileColumns + t * 2 + i % 2,
                       m * kTileRows + i / 2 * 8 + g)] = sums[m][n][i];
  __syncthreads();
  write_outputs(args, layout, kBlock, first_row, real, room);
}

// Activations as the lanes of packed_linear_kernel read them: for each block's rows, each chunk and
// each tile of columns the words of all lanes. A column is a term of a row.
__global__ void arrange_kernel(const float* x, Word* columns, std::int64_t k, int codes_of_word,
                               int groups, int tiles, const __grid_constant__ Layout layout,
                               const __grid_constant__ Extent rows) {
  const std::int64_t real = real_size(rows);
  if (real < layout.fewest || real > layout.most) return;
  const int pairs = codes_of_word / 2, words = 4 * pairs;
  const std::int64_t chunk_size = kChunkWords * codes_of_word, chunks = k / chunk_size;
  const std::int64_t blocks = (rows.capacity + layout.rows_at_once - 1) / layout.rows_at_once;
  const std::int64_t count = blocks * chunks * tiles * kWarp * words;
  for (std::int64_t place = global_thread(); place < count; place += grid_stride()) {
    std::int64_t rest = place;
    const auto take = [&](std::int64_t size) {
      const std::int64_t index = rest % size;
      rest /= size;
      return static_cast<int>(index);
    };
    const int pair = take(pairs), word = take(4), lane = take(kWarp), tile = take(tiles);
    const int chunk = take(chunks), block = static_cast<int>(rest);
    const int column = tile * kTileColumns + lane / 4, row_of_block = column / layout.terms;
    const std::int64_t row = std::int64_t{block} * layout.rows_at_once + row_of_block;
    const std::int64_t at =
        row * k + chunk * chunk_size + word_of_chunk(groups, lane, word) * codes_of_word + pair;
    Word both = 0;
    if (row_of_block < layout.rows_at_once && row < real)
      for (int half = 0; half < 2; ++half)
        both |= Word{term_of(x[at + half * pairs], column % layout.terms)} << (16 * half);
    columns[place] = both;
  }
}

// A warp takes kVectorOutputs outputs, kOutputs at a time, and every so many-th slice of their
// inputs, kNumbers for each lane, for kRows rows at most; what its lanes have added up is joined at
// the end.
template <typename Codes, int kRows, int kOutputs>
__device__ void multiply_vectors(const PackedLinearArgs& args, const Layout& layout,
                                 std::int64_t real, float* room) {
  constexpr int kPairs = Codes::kCodes / 2, kWords = kVectorNumbers / Codes::kCodes;
  constexpr int kSums = kOutputs * kRows, kTimes = kVectorOutputs / kOutputs;
  static_assert(kSums <= kWarp && (kSums & (kSums - 1)) == 0);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int slices = num_slices(args.k), sharing = min(slices, kVectorWarps);
  const int teams = kVectorWarps / sharing, team = warp / sharing;
  const std::int64_t first_output = (std::int64_t{blockIdx.x} * teams + team) * kVectorOutputs;
  const bool is_idle = team >= teams || first_output >= args.n;
  const int own = is_idle ? 0 : (slices - warp % sharing + sharing - 1) / sharing;  // slices
  const auto place_of_lane = [&](int turn) {
    return ((warp % sharing + turn % own * sharing) * kWarp + lane) * kVectorNumbers;
  };
  Word read[kOutputs][kWords];
  const auto load = [&](int turn) {
    if (turn >= own * kTimes) return;
    const int first = place_of_lane(turn);
    if (first >= args.k) return;
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const std::int64_t output = min(first_output + turn / own * kOutputs + i, args.n - 1);
      load_words_once(
          args.weight.codes + output * args.weight.row_bytes + first / Codes::kCodes * 4, read[i]);
    }
  };
  load(0);
  float* const scales = room + kVectorRoom;
  stage_scales<Codes::kHasZero>(args, layout, blockIdx.x * teams * kVectorOutputs,
                                teams * kVectorOutputs, scales);
  __syncthreads();
  float x[kRows][kVectorNumbers];
  float sums[kSums] = {};
  for (int turn = 0; turn < own * kTimes; ++turn) {
    const int first = place_of_lane(turn), time = turn / own;
    if (first < args.k) {
      if (turn == 0 || own > 1) {
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          const auto* const from = reinterpret_cast<const float4*>(args.x + row * args.k + first);
#pragma unroll
          for (int i = 0; i < kVectorNumbers / 4; ++i) {
            const float4 four = row < real ? __ldg(from + i) : make_float4(0, 0, 0, 0);
            x[row][4 * i] = four.x;
            x[row][4 * i + 1] = four.y;
            x[row][4 * i + 2] = four.z;
            x[row][4 * i + 3] = four.w;
          }
          if (args.precision == Precision::Bf16)
#pragma unroll
            for (int i = 0; i < kVectorNumbers; ++i)
              x[row][i] = __bfloat162float(__float2bfloat16_rn(x[row][i]));
        }
      }
      const float* const scale =
          scales + (team * kVectorOutputs + time * kOutputs) * layout.stride + first / layout.group;
      const float* const zero = scale + teams * kVectorOutputs * layout.stride;
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) {
        float part[kRows] = {};
#pragma unroll
        for (int word = 0; word < kWords; ++word) {
          Word pairs[kPairs];
          Codes::convert(read[i][word],
                         Codes::kHasZero ? __float_as_uint(zero[i * layout.stride]) : 0, pairs);
#pragma unroll
          for (int pair = 0; pair < kPairs; ++pair)
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
              const float* const at = x[row] + word * Codes::kCodes + pair;
              part[row] = fmaf(__uint_as_float(pairs[pair] << 16), at[0], part[row]);
              part[row] = fmaf(__uint_as_float(pairs[pair] & 0xffff0000u), at[kPairs], part[row]);
            }
        }
#pragma unroll
        for (int row = 0; row < kRows; ++row)
          sums[i * kRows + row] = fmaf(part[row], scale[i * layout.stride], sums[i * kRows + row]);
      }
    }
    load(turn + 1);
    if ((turn + 1) % own == 0) {
      const int place = join_lanes(sums, lane);
      if (lane % (kWarp / kSums) == 0) room[(time * kVectorWarps + warp) * kSums + place] = sums[0];
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
  }
  __syncthreads();
  const int of_block = teams * kVectorOutputs;
  for (int i = threadIdx.x; i < of_block * args.rows.capacity; i += kVectorWarps * kWarp) {
    const int row = i / of_block, output = i % of_block, of_warp = output % kVectorOutputs;
    float sum = 0;
    if (row < real)
      for (int share = 0; share < sharing; ++share)
        sum +=
            room[(of_warp / kOutputs * kVectorWarps + output / kVectorOutputs * sharing + share) *
                     kSums +
                 of_warp % kOutputs * kRows + row];
    finish(args, row, std::int64_t{blockIdx.x} * of_block + output, sum, row < real);
  }
}

template <typename Codes>
__global__ void __launch_bounds__(kVectorWarps* kWarp)
    vector_linear_kernel(const __grid_constant__ PackedLinearArgs args,
                         const __grid_constant__ Layout layout) {
  extern __shared__ float room[];
  const std::int64_t real = real_size(args.rows);
  if (real < layout.fewest || real > layout.most) return;
  multiply_vectors<Codes, kMostVectorRows, kVectorOutputs>(args, layout, real, room);
}

// The same with whole numbers: codes of activations by codes of weights. A group's sum is below
// 2^22 (128 * 127^2), so a sum that starts at the bits of 1.5 * 2^23 is that float plus the sum.
template <int kGroups, int kTilesM, int kTilesN, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp)
    integer_linear_kernel(const __grid_constant__ PackedLinearArgs args,
                          const __grid_constant__ Layout layout) {
  constexpr int kChunk = kChunkWords * 4, kOutputs = kTileRows * kTilesM;
  constexpr int kColumns = kTileColumns * kTilesN;
  constexpr Shape kBlock{kOutputs, kColumns, kWarps};
  constexpr int kMagnet = 0x4b400000;
  extern __shared__ float room[];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int g = lane / 4, t = lane % 4;
  const int first_output = static_cast<int>(blockIdx.x) * kOutputs;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * layout.rows_at_once;
  const std::int64_t real = real_size(args.rows);
  const int k = static_cast<int>(args.k), chunks = k / kChunk;
  const int columns = static_cast<int>(
      max(std::int64_t{0}, min(std::int64_t{layout.rows_at_once}, real - first_row)));
  if (columns == 0) {
    write_outputs(args, layout, kBlock, first_row, real, room);
    return;
  }
  stage_scales<false>(args, layout, first_output, kOutputs, room);
  float* const column_scales = room + kOutputs * layout.stride;
  for (int i = threadIdx.x; i < columns * layout.groups; i += kWarps * kWarp)
    column_scales[i / layout.groups * layout.stride + i % layout.groups] =
        layout.column_scales[first_row * layout.groups + i];
  __syncthreads();

  const auto* const x = static_cast<const std::uint8_t*>(layout.columns) + first_row * args.k;
  float sums[kTilesM][kTilesN][4] = {};
  for (int chunk = warp; chunk < chunks; chunk += kWarps) {
    Word words[kTilesM][2][4];
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t output = first_output + m * kTileRows + half * 8 + g;
        const uint4 four =
            load_once(args.weight.codes + min(output, args.n - 1) * args.weight.row_bytes + t * 16 +
                      chunk * kChunk);
        words_of(four, words[m][half]);
        exchange_words<kGroups>(words[m][half], lane);
      }
    Word b[kTilesN][4];
#pragma unroll
    for (int n = 0; n < kTilesN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        b[n][i] = n * kTileColumns + g < columns
                      ? __ldg(reinterpret_cast<const Word*>(
                            x + std::int64_t{n * kTileColumns + g} * k + chunk * kChunk +
                            word_of_chunk(kGroups, lane, i) * 4))
                      : 0;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int scale_at = (chunk * kChunk + group * (kChunk / kGroups)) / layout.group;
#pragma unroll
      for (int m = 0; m < kTilesM; ++m)
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) {
          int whole[4] = {kMagnet, kMagnet, kMagnet, kMagnet};
          if constexpr (kGroups == 4) {
            multiply_add_16(whole, words[m][0][group], words[m][1][group], b[n][group]);
          } else {
#pragma unroll
            for (int i = group * 4 / kGroups; i < (group + 1) * 4 / kGroups; i += 2) {
              const Word a[4] = {words[m][0][i], words[m][1][i], words[m][0][i + 1],
                                 words[m][1][i + 1]};
              multiply_add_32(whole, a, b[n][i], b[n][i + 1]);
            }
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float scale = room[(m * kTileRows + i / 2 * 8 + g) * layout.stride + scale_at];
            const int column = n * kTileColumns + t * 2 + i % 2;
            const float by =
                column < columns ? column_scales[column * layout.stride + scale_at] : 0.0f;
            const float sum = __int_as_float(whole[i]) - __int_as_float(kMagnet);
            sums[m][n][i] = fmaf(sum * by, scale, sums[m][n][i]);
          }
        }
    }
  }
  __syncthreads();
#pragma unroll
  for (int m = 0; m < kTilesM; ++m)
#pragma unroll
    for (int n = 0; n < kTilesN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        room[sum_place(kBlock, warp, n * kTileColumns + t * 2 + i % 2,
                       m * kTileRows + i / 2 * 8 + g)] = sums[m][n][i];
  __syncthreads();
  write_outputs(args, layout, kBlock, first_row, real, room);
}

// Rows as MXINT8: a warp for each group. A group that is NaN has zeros for codes.
__global__ void encode_kernel(const float* x, std::int8_t* codes, float* scales, std::int64_t k,
                              int group, const __grid_constant__ Extent rows) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t groups = real_size(rows) * (k / group);
  const std::int64_t stride = grid_stride() / kWarp;
  for (std::int64_t i = global_thread() / kWarp; i < groups; i += stride) {
    std::uint32_t largest = 0;
    for (int j = lane; j < group; j += kWarp)
      largest = max(largest, numerics::bits_of(x[i * group + j]) & ~numerics::kSignBit);
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      largest = max(largest, __shfl_xor_sync(kAllLanes, largest, distance));
    const int code = numerics::SharedExponent{}.code(largest);
    const float inverse = numerics::SharedExponent::inverse(code);
    for (int j = lane; j < group; j += kWarp)
      codes[i * group + j] = static_cast<std::int8_t>(numerics::IntegerCodec{}.round(
          x[i * group + j] * inverse * 64.0f, Rounding::NearestEven, 0));
    if (lane == 0) scales[i] = numerics::SharedExponent::scale(code) * (1.0f / 64);
  }
}

template <typename Kernel>
void allow_room(Kernel kernel, std::size_t bytes) {
  if (bytes > std::size_t{48} << 10)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
}

template <typename Kernel>
void launch(Kernel kernel, const Shape& block, int scale_rows, const PackedLinearArgs& args,
            const Layout& layout, Stream* stream) {
  const std::size_t scales = static_cast<std::size_t>(scale_rows) * layout.stride;
  const std::size_t sums =
      static_cast<std::size_t>(block.warps) * block.columns * (block.outputs + 1);
  const std::size_t bytes = sizeof(float) * (scales > sums ? scales : sums);
  allow_room(kernel, bytes);
  const dim3 grid(
      static_cast<unsigned>((args.n + block.outputs - 1) / block.outputs),
      static_cast<unsigned>((args.rows.capacity + layout.rows_at_once - 1) / layout.rows_at_once));
  kernel<<<grid, block.warps * kWarp, bytes, stream_of(stream)>>>(args, layout);
}

template <typename Codes, int kGroups, int kTilesN, int kTilesM>
void multiply_tiles(const PackedLinearArgs& args, Layout layout, Stream* stream) {
  constexpr int kWarps = 8, kAhead = Codes::kCodes == 4 ? 2 : 1;
  constexpr Shape kBlock{kTilesM * kTileRows, kTilesN * kTileColumns, kWarps};
  layout.rows_at_once = kBlock.columns / layout.terms;
  layout.columns = args.scratch;
  const std::int64_t blocks = (args.rows.capacity + layout.rows_at_once - 1) / layout.rows_at_once;
  arrange_kernel<<<blocks_for(blocks * kBlock.columns * args.k / 2, kThreads), kThreads, 0,
                   stream_of(stream)>>>(args.x, reinterpret_cast<Word*>(args.scratch), args.k,
                                        Codes::kCodes, kGroups, kTilesN, layout, args.rows);
  launch(packed_linear_kernel<Codes, kGroups, kTilesM, kTilesN, kWarps, kAhead>, kBlock,
         kBlock.outputs * (Codes::kHasZero ? 2 : 1), args, layout, stream);
}

template <typename Codes, int kGroups, int kTilesN>
void multiply_tiles(const PackedLinearArgs& args, const Layout& layout, Stream* stream) {
  // Two tiles share what they read of x; one makes blocks for every multiprocessor.
  constexpr std::int64_t kFewOutputs = 4096;
  if (args.n <= kFewOutputs)
    multiply_tiles<Codes, kGroups, kTilesN, 1>(args, layout, stream);
  else
    multiply_tiles<Codes, kGroups, kTilesN, 2>(args, layout, stream);
}

template <typename Codes, int kGroups>
void multiply_tiles(const PackedLinearArgs& args, const Layout& layout, Stream* stream) {
  // Three terms of 8 rows are three tiles.
  if (layout.terms == 3)
    multiply_tiles<Codes, kGroups, 3>(args, layout, stream);
  else
    multiply_tiles<Codes, kGroups, 2>(args, layout, stream);
}

template <typename Codes>
void multiply(const PackedLinearArgs& args, Layout layout, Stream* stream) {
  // How many rows there are is known when the launch runs, unless it is always the same.
  const bool may_be_few = args.rows.capacity <= kMostVectorRows || args.rows.symbol != nullptr;
  if (may_be_few) {
    const int slices = num_slices(args.k);
    const int sharing = slices < kVectorWarps ? slices : kVectorWarps;
    const int outputs = kVectorWarps / sharing * kVectorOutputs;
    const std::size_t bytes =
        sizeof(float) * (kVectorRoom + static_cast<std::size_t>(outputs) * layout.stride *
                                           (Codes::kHasZero ? 2 : 1));
    layout.fewest = 0;
    layout.most = kMostVectorRows;
    const auto kernel = vector_linear_kernel<Codes>;
    allow_room(kernel, bytes);
    kernel<<<static_cast<unsigned>((args.n + outputs - 1) / outputs), kVectorWarps * kWarp, bytes,
             stream_of(stream)>>>(args, layout);
    if (args.rows.capacity <= kMostVectorRows) return;
    layout.fewest = kMostVectorRows + 1;
  }
  layout.most = args.rows.capacity;
  const int in_chunk = kChunkWords * Codes::kCodes / layout.group;
  if (in_chunk >= 4)
    multiply_tiles<Codes, 4>(args, layout, stream);
  else if (in_chunk == 2)
    multiply_tiles<Codes, 2>(args, layout, stream);
  else
    multiply_tiles<Codes, 1>(args, layout, stream);
}

void multiply_integers(const PackedLinearArgs& args, Layout layout, Stream* stream) {
  constexpr int kWarps = 8, kTilesM = 2, kTilesN = 4;
  constexpr Shape kBlock{kTilesM * kTileRows, kTilesN * kTileColumns, kWarps};
  layout.rows_at_once = kBlock.columns;
  const int in_chunk = kChunkWords * 4 / layout.group;
  const auto kernel = in_chunk >= 4   ? integer_linear_kernel<4, kTilesM, kTilesN, kWarps>
                      : in_chunk == 2 ? integer_linear_kernel<2, kTilesM, kTilesN, kWarps>
                                      : integer_linear_kernel<1, kTilesM, kTilesN, kWarps>;
  launch(kernel, kBlock, kBlock.outputs + kBlock.columns, args, layout, stream);
}

}  // namespace

void packed_linear(const PackedLinearArgs& args, Stream* stream) {
  if (args.rows.capacity == 0 || args.n == 0) return;
  Layout layout;
  layout.group = static_cast<int>(args.weight.format.block);
  layout.groups = static_cast<int>((args.k + layout.group - 1) / layout.group);
  layout.stride = layout.groups | 1;  // odd: outputs' scales lie in different banks
  if (args.encodes) {
    const std::int64_t count = args.rows.capacity * args.k;
    auto* const scales = reinterpret_cast<float*>(args.scratch + count);
    layout.columns = args.scratch;
    layout.column_scales = scales;
    encode_kernel<<<blocks_for(count / layout.group, kThreads / kWarp), kThreads, 0,
                    stream_of(stream)>>>(args.x, reinterpret_cast<std::int8_t*>(args.scratch),
                                         scales, args.k, layout.group, args.rows);
    return multiply_integers(args, layout, stream);
  }
  layout.terms = static_cast<int>(num_terms(args.precision));
  switch (args.code) {
    case PackedCode::Int8:
      return multiply<Int8Codes>(args, layout, stream);
    case PackedCode::Int4:
      return multiply<Int4Codes>(args, layout, stream);
    case PackedCode::Unsigned4:
      return multiply<Unsigned4Codes>(args, layout, stream);
    case PackedCode::E4m3:
      return multiply<E4m3Codes>(args, layout, stream);
    case PackedCode::E5m2:
      return multiply<E5m2Codes>(args, layout, stream);
    case PackedCode::E2m1:
      return multiply<E2m1Codes>(args, layout, stream);
  }
}

}  // namespace lathe::engine::cuda
