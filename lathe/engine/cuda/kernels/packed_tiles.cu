// Few rows by a packed weight on tensor cores.
//
// A code is exact in bfloat16, an activation is the sum of up to three bfloat16 terms, each of
// which is a column of the product; so products are exact and only sums round.

#include "lathe/engine/cuda/kernels/packed_ring.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = 8;

// A chunk's activations in units of 16 bytes: for each tile of columns and each pair that a word
// of codes becomes, four words of each lane.
constexpr __host__ __device__ int term_units(int pairs, int tiles) {
  return tiles * pairs * kWarp;
}

template <typename Codes, bool kExponents, int kGroups, int kTilesM, int kTilesN, int kStages>
__global__ void __launch_bounds__(kWarps* kWarp)
    packed_tiles_kernel(const __grid_constant__ PackedLinearArgs args,
                        const __grid_constant__ PackedLayout layout) {
  constexpr int kPairs = Codes::kCodes / 2, kChunk = kChunkWords * Codes::kCodes;
  using Ring =
      PackedRing<kExponents, kTilesM, kTilesN, term_units(kPairs, kTilesN), kWarps, kStages>;
  extern __shared__ uint4 room[];
  Ring ring(args, layout, static_cast<int>(args.k) / kChunk, room);
  const int lane = threadIdx.x % kWarp, g = lane / 4;
  const int group_bits = layout.scales.group_bits;
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
      const int scale_at = (chunk * kChunk + group * (kChunk / kGroups)) >> group_bits;
      float group_sums[kTilesM][kTilesN][4] = {};
#pragma unroll
      for (int i = group * 4 / kGroups; i < (group + 1) * 4 / kGroups; ++i) {
        Word b[kTilesN][kPairs];
#pragma unroll
        for (int n = 0; n < kTilesN; ++n)
#pragma unroll
          for (int pair = 0; pair < kPairs; pair += 2) {
            const int of_lane = i * kPairs + pair;
            const uint2 two = reinterpret_cast<const uint2*>(
                columns + (n * kPairs + of_lane / 4) * kWarp + lane)[of_lane % 4 / 2];
            b[n][pair] = two.x;
            b[n][pair + 1] = two.y;
          }
#pragma unroll
        for (int m = 0; m < kTilesM; ++m) {
          Word low[kPairs], high[kPairs];
          Codes::convert(words[m][0][i], Codes::kHasZero ? ring.zero(m, 0, scale_at) : 0, low);
          Codes::convert(words[m][1][i], Codes::kHasZero ? ring.zero(m, 1, scale_at) : 0, high);
#pragma unroll
          for (int pair = 0; pair < kPairs; pair += 2) {
            const Word a[4] = {low[pair], high[pair], low[pair + 1], high[pair + 1]};
#pragma unroll
            for (int n = 0; n < kTilesN; ++n) multiply_bf16(group_sums[m][n], a, b[n] + pair);
          }
        }
      }
#pragma unroll
      for (int m = 0; m < kTilesM; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float scale = ring.scale(m, half, scale_at);
#pragma unroll
          for (int n = 0; n < kTilesN; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i)
              sums[m][n][i] = fmaf(group_sums[m][n][i], scale, sums[m][n][i]);
        }
    }
  });
  ring.finish(sums);
}

// What arrange_terms_kernel makes of activations.
struct TermArrangement {
  const float* x = nullptr;
  Word* columns = nullptr;
  int k = 0, codes_of_word = 4, groups = 2, tiles = 1, terms = 1, rows_at_once = 1;
  Precision precision = Precision::Float32;
  Extent rows;
};

// Two inputs a thread. A column is a term of a row.
__global__ void arrange_terms_kernel(const __grid_constant__ TermArrangement to) {
  let_next_begin();
  wait_for_previous();
  const std::int64_t real = real_size(to.rows);
  const int pairs = to.codes_of_word / 2, chunk_size = kChunkWords * to.codes_of_word;
  const int chunks = to.k / chunk_size;
  const std::int64_t blocks = (to.rows.capacity + to.rows_at_once - 1) / to.rows_at_once;
  const std::int64_t count = blocks * chunks * term_units(pairs, to.tiles) * 4;
  for (std::int64_t place = global_thread(); place < count; place += grid_stride()) {
    auto rest = static_cast<std::uint32_t>(place);
    const auto take = [&](int size) {
      const std::uint32_t whole = rest / static_cast<std::uint32_t>(size);
      const auto index = static_cast<int>(rest - whole * static_cast<std::uint32_t>(size));
      rest = whole;
      return index;
    };
    const int of_four = take(4), lane = take(kWarp), four = take(pairs), tile = take(to.tiles);
    const int chunk = take(chunks), of_lane = four * 4 + of_four;
    const int column = tile * kTileColumns + lane / 4, of_block = column / to.terms;
    const std::int64_t row = std::int64_t{rest} * to.rows_at_once + of_block;
    const std::int64_t at = row * to.k + chunk * chunk_size +
                            word_of_chunk(to.groups, lane, of_lane / pairs) * to.codes_of_word +
                            of_lane % pairs;
    Word both = 0;
    if (of_block < to.rows_at_once && row < real)
      for (int half = 0; half < 2; ++half)
        both |=
            Word{term_of(rounded_operand(to.precision, to.x[at + half * pairs]), column % to.terms)}
            << (16 * half);
    to.columns[place] = both;
  }
}

template <typename Codes, bool kExponents, int kGroups, int kTilesM, int kTilesN, int kStages>
void multiply(const PackedLinearArgs& args, int terms, Stream* stream) {
  using Ring = PackedRing<kExponents, kTilesM, kTilesN, term_units(Codes::kCodes / 2, kTilesN),
                          kWarps, kStages>;
  const PackedLayout layout = Ring::layout(args, terms);
  TermArrangement arranged;
  arranged.x = args.x;
  arranged.columns = reinterpret_cast<Word*>(args.scratch);
  arranged.k = static_cast<int>(args.k);
  arranged.codes_of_word = Codes::kCodes;
  arranged.groups = kGroups;
  arranged.tiles = kTilesN;
  arranged.terms = terms;
  arranged.rows_at_once = layout.rows_at_once;
  arranged.precision = args.precision;
  arranged.rows = args.rows;
  const std::int64_t count = Ring::row_blocks(args, layout) * kTilesN * kTileColumns * args.k / 2;
  launch_early(args.may_begin_early, arrange_terms_kernel, dim3(blocks_for(count, kThreads)),
               kThreads, 0, stream, arranged);
  Ring::launch(packed_tiles_kernel<Codes, kExponents, kGroups, kTilesM, kTilesN, kStages>, args,
               layout, stream);
}

// For up to 8 columns, or as many blocks of 24 as there are.
template <typename Codes, bool kExponents, int kGroups>
void multiply(const PackedLinearArgs& args, int terms, Stream* stream) {
  if (args.rows.capacity * terms <= kTileColumns)
    multiply<Codes, kExponents, kGroups, 2, 1, 3>(args, terms, stream);
  else
    multiply<Codes, kExponents, kGroups, 2, 3, Codes::kCodes == 4 ? 3 : 2>(args, terms, stream);
}

// MXINT8 with groups of 32 or more: all columns of 16 rows in one block. Of few outputs there is a
// block on each multiprocessor, with more on its way; else two.
void multiply_bytes(const PackedLinearArgs& args, int terms, Stream* stream) {
  constexpr std::int64_t kFewOutputs = 4096;
  const bool are_few = args.n <= kFewOutputs;
  const std::int64_t columns = args.rows.capacity * terms;
  if (columns <= kTileColumns)
    are_few ? multiply<Int8Codes, true, 2, 2, 1, 6>(args, terms, stream)
            : multiply<Int8Codes, true, 2, 2, 1, 4>(args, terms, stream);
  else if (columns <= 2 * kTileColumns)
    are_few ? multiply<Int8Codes, true, 2, 2, 2, 4>(args, terms, stream)
            : multiply<Int8Codes, true, 2, 2, 2, 3>(args, terms, stream);
  else if (columns <= 3 * kTileColumns)
    are_few ? multiply<Int8Codes, true, 2, 2, 3, 3>(args, terms, stream)
            : multiply<Int8Codes, true, 2, 2, 3, 2>(args, terms, stream);
  else
    multiply<Int8Codes, true, 2, 2, 6, 2>(args, terms, stream);
}

}  // namespace

void packed_tiles(const PackedLinearArgs& args, Stream* stream) {
  const int terms = static_cast<int>(num_terms(args.precision));
  const bool has_exponents = args.weight.format.rule == ScaleBy::SharedExponent;
  switch (args.code) {
    case PackedCode::Int8:
      if (!has_exponents) return multiply<Int8Codes, false, 2>(args, terms, stream);
      if (args.weight.format.block == 16) return multiply<Int8Codes, true, 4>(args, terms, stream);
      return multiply_bytes(args, terms, stream);
    case PackedCode::Int4:
      return has_exponents ? multiply<Int4Codes, true, 4>(args, terms, stream)
                           : multiply<Int4Codes, false, 4>(args, terms, stream);
    case PackedCode::Unsigned4:
      return multiply<Unsigned4Codes, false, 4>(args, terms, stream);
    case PackedCode::E4m3:
      return multiply<E4m3Codes, true, 2>(args, terms, stream);
    case PackedCode::E5m2:
      return multiply<E5m2Codes, true, 2>(args, terms, stream);
    case PackedCode::E2m1:
      return multiply<E2m1Codes, true, 4>(args, terms, stream);
  }
}

}  // namespace lathe::engine::cuda
