// Rows as MXINT8 codes by such codes: products and sums of a group are whole numbers.

#include "lathe/engine/cuda/kernels/packed_ring.cuh"
#include "lathe/numerics/codecs/integer_codec.h"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = 8;

// A chunk's activations in units of 16 bytes: for each tile of rows the words of all lanes, then a
// scale for each group and row.
constexpr __host__ __device__ int code_units(int tiles) {
  return tiles * kWarp;
}
constexpr __host__ __device__ int column_units(int groups, int tiles) {
  return code_units(tiles) + groups * tiles * (kTileColumns / 4);
}

// A sum that starts at the bits of 1.5 * 2^23 is that float plus the sum, if it is below 2^22: what
// is summed at once are 32 products of at most 2^14.
constexpr int kMagnet = 0x4b400000;

__device__ void multiply_32(int (&sums)[4], const Word (&a)[4], Word b0, Word b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void multiply_16(int (&sums)[4], Word a0, Word a1, Word b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(b));
}

// 2 groups in a chunk for scales of 32 inputs or more, 4 for those of 16.
template <int kGroups, int kTilesM, int kTilesN, int kStages>
__global__ void __launch_bounds__(kWarps* kWarp)
    packed_integers_kernel(const __grid_constant__ PackedLinearArgs args,
                           const __grid_constant__ PackedLayout layout) {
  constexpr int kWords = 4 / kGroups;  // of a group, that a lane has
  using Ring = PackedRing<true, kTilesM, kTilesN, column_units(kGroups, kTilesN), kWarps, kStages>;
  extern __shared__ uint4 room[];
  Ring ring(args, layout, static_cast<int>(args.k) / kChunkBytes, room);
  const int lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  float sums[kTilesM][kTilesN][4] = {};
  ring.for_chunks([&](int chunk, const uint4* codes, const uint4* columns) {
    Word words[kTilesM][2][4];
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        read_words<kGroups>(codes, m * kTileRows + half * 8 + g, lane, words[m][half]);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int scale_at =
          (chunk * kChunkBytes + group * (kChunkBytes / kGroups)) >> layout.scales.group_bits;
      Word b[kTilesN][kWords];
      float2 by[kTilesN];
#pragma unroll
      for (int n = 0; n < kTilesN; ++n) {
#pragma unroll
        for (int i = 0; i < kWords; ++i)
          b[n][i] = reinterpret_cast<const Word*>(columns + n * kWarp + lane)[group * kWords + i];
        by[n] = reinterpret_cast<const float2*>(
            columns + code_units(kTilesN))[(group * kTilesN + n) * (kTileColumns / 2) + t];
      }
#pragma unroll
      for (int m = 0; m < kTilesM; ++m) {
        const float scale[2] = {ring.scale(m, 0, scale_at), ring.scale(m, 1, scale_at)};
#pragma unroll
        for (int n = 0; n < kTilesN; ++n) {
          const int first = group * kWords;
          int whole[4] = {kMagnet, kMagnet, kMagnet, kMagnet};
          if constexpr (kWords == 2)
            multiply_32(whole,
                        {words[m][0][first], words[m][1][first], words[m][0][first + 1],
                         words[m][1][first + 1]},
                        b[n][0], b[n][1]);
          else
            multiply_16(whole, words[m][0][first], words[m][1][first], b[n][0]);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float sum = __int_as_float(whole[i]) - __int_as_float(kMagnet);
            const float by_row = i % 2 == 0 ? by[n].x : by[n].y;
            sums[m][n][i] = fmaf(sum * by_row, scale[i / 2], sums[m][n][i]);
          }
        }
      }
    }
  });
  ring.finish(sums);
}

// What encode_kernel makes of activations.
struct Encoding {
  const float* x = nullptr;
  std::byte* columns = nullptr;
  int k = 0, block_bits = 5, groups = 2, tiles = 1;
  Extent rows;
};

// Eight inputs a thread; those of a block are neighbours in a warp. Rows beyond the last are zeros.
__global__ void encode_kernel(const __grid_constant__ Encoding to) {
  constexpr int kEach = 8;
  let_next_begin();
  wait_for_previous();
  const std::int64_t real = real_size(to.rows);
  const int runs = to.k / kEach, chunks = to.k / kChunkBytes, at_once = to.tiles * kTileColumns;
  const std::int64_t rows = (to.rows.capacity + at_once - 1) / at_once * at_once;
  const int lanes = (1 << to.block_bits) / kEach, of_group = kChunkBytes / to.groups;
  for (std::int64_t first = global_thread() / kWarp * kWarp; first < rows * runs;
       first += grid_stride()) {
    const std::int64_t i = first + threadIdx.x % kWarp, row = i / runs;
    const int input = static_cast<int>(i % runs) * kEach;
    float x[kEach] = {};
    Word largest = 0;
    if (row < real) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        x[j] = __ldg(to.x + row * to.k + input + j);
        largest = max(largest, numerics::bits_of(x[j]) & ~numerics::kSignBit);
      }
    }
    for (int distance = 1; distance < lanes; distance *= 2)
      largest = max(largest, __shfl_xor_sync(kAllLanes, largest, distance));
    if (row >= rows) continue;
    const int code = numerics::SharedExponent{}.code(largest);
    const float inverse = numerics::SharedExponent::inverse(code);
    Word words[2] = {};
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const auto rounded = static_cast<std::int64_t>(
          numerics::IntegerCodec{}.round(x[j] * inverse * 64.0f, Rounding::NearestEven, 0));
      words[j / 4] |= (static_cast<Word>(rounded) & 0xffu) << (8 * (j % 4));
    }
    const int chunk = input / kChunkBytes, in_chunk = input % kChunkBytes;
    const int column = static_cast<int>(row % at_once), tile = column / kTileColumns;
    std::byte* const record =
        to.columns + (row / at_once * chunks + chunk) * column_units(to.groups, to.tiles) * 16;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int word = in_chunk / 4 + j;
      const int t = to.groups == 4 ? word % 4 : word % 8 / 2;
      const int of_lane = to.groups == 4 ? word / 4 : word / 8 * 2 + word % 2;
      const int lane = column % kTileColumns * 4 + t;
      reinterpret_cast<Word*>(record)[(tile * kWarp + lane) * 4 + of_lane] = words[j];
    }
    if (in_chunk % of_group == 0)
      reinterpret_cast<float*>(record +
                               code_units(to.tiles) * 16)[in_chunk / of_group * at_once + column] =
          numerics::SharedExponent::scale(code) * (1.0f / 64);
  }
}

template <int kGroups, int kTilesN>
void multiply(const PackedLinearArgs& args, Stream* stream) {
  constexpr int kTilesM = 2, kStages = 4;
  using Ring = PackedRing<true, kTilesM, kTilesN, column_units(kGroups, kTilesN), kWarps, kStages>;
  const PackedLayout layout = Ring::layout(args, 1);
  Encoding encoding;
  encoding.x = args.x;
  encoding.columns = args.scratch;
  encoding.k = static_cast<int>(args.k);
  encoding.block_bits = layout.scales.group_bits;
  encoding.groups = kGroups;
  encoding.tiles = kTilesN;
  encoding.rows = args.rows;
  if (layout.scales.of_output == 1)  // one block is the whole row
    for (encoding.block_bits = 0; (1 << encoding.block_bits) < encoding.k;) ++encoding.block_bits;
  const std::int64_t rows = Ring::row_blocks(args, layout) * layout.rows_at_once;
  launch_early(args.may_begin_early, encode_kernel, dim3(blocks_for(rows * args.k / 8, kThreads)),
               kThreads, 0, stream, encoding);
  Ring::launch(packed_integers_kernel<kGroups, kTilesM, kTilesN, kStages>, args, layout, stream);
}

template <int kGroups>
void multiply(const PackedLinearArgs& args, Stream* stream) {
  if (args.rows.capacity <= kTileColumns)
    multiply<kGroups, 1>(args, stream);
  else
    multiply<kGroups, 4>(args, stream);
}

}  // namespace

void packed_integers(const PackedLinearArgs& args, Stream* stream) {
  if (args.weight.format.block == 16)
    multiply<4>(args, stream);
  else
    multiply<2>(args, stream);
}

}  // namespace lathe::engine::cuda
