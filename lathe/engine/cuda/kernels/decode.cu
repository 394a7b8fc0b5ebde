// Packed numbers as floats or bfloat16: of any format by its codec, bit for bit as on the CPU, and
// MXINT8 by tiles at the speed of a copy.

#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/packed_codes.cuh"
#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/numerics/codecs/level_codec.h"
#include "lathe/numerics/codecs/minifloat_codec.h"

namespace lathe::engine::cuda {
namespace {

constexpr int kRun = 8;  // codes of a thread: as many bytes as a code has bits

__device__ std::uint32_t bytes_at(const std::uint8_t* from, int count) {
  std::uint32_t word = 0;
  for (int i = 0; i < count; ++i) word |= std::uint32_t{from[i]} << (8 * i);
  return word;
}

struct StoredScale {
  float scale = 1;
  std::int64_t zero = 0;
};

__device__ StoredScale stored_scale(const PackedMatrix& packed, std::int64_t index) {
  const QuantizeArgs& format = packed.format;
  switch (format.rule) {
    case ScaleBy::Constant:
      return {};
    case ScaleBy::Given:
      return {format.scales[index], format.zeros == nullptr ? 0 : llrintf(format.zeros[index])};
    case ScaleBy::GivenPowerOfTwo:
      return {nearest_power_of_two(format.scales[index])};
    case ScaleBy::SharedExponent:
      return {numerics::SharedExponent::scale(packed.local[index])};
    case ScaleBy::LargestMagnitude:
    case ScaleBy::Range: {
      const std::uint8_t* const bytes = packed.local + index * packed.local_bytes;
      return {numerics::float_of(bytes_at(bytes, 4)), bytes_at(bytes + 4, packed.local_bytes - 4)};
    }
  }
  return {};
}

__device__ float element(const QuantizeArgs& format, std::uint32_t code, std::int64_t zero) {
  switch (format.codec) {
    case Codec::Integer:
      return numerics::IntegerCodec{format.bits, format.low - zero, format.high - zero,
                                    format.zero + zero}
          .decode(code);
    case Codec::Minifloat:
      return numerics::MinifloatCodec{format.exponent_bits, format.mantissa_bits, format.bias,
                                      static_cast<numerics::Specials>(format.specials),
                                      format.overflows}
          .decode(code);
    case Codec::Levels:
      return format.levels[code];
  }
  return 0;
}

// A thread for each run of a row: a row begins at a byte and so does every run.
template <typename T>
__global__ void decode_kernel(const __grid_constant__ DecodeArgs args) {
  const PackedMatrix& packed = args.packed;
  const QuantizeArgs& format = packed.format;
  const std::int64_t real = real_size(args.rows);
  const std::int64_t runs = (format.columns + kRun - 1) / kRun;
  const std::int64_t blocks = (format.columns + format.block - 1) / format.block;
  const std::uint64_t mask = (std::uint64_t{1} << format.bits) - 1;
  for (std::int64_t i = global_thread(); i < args.rows.capacity * runs; i += grid_stride()) {
    const std::int64_t to = i / runs, first = i % runs * kRun;
    const int count = static_cast<int>(min(std::int64_t{kRun}, format.columns - first));
    T* const y = static_cast<T*>(args.y) + to * format.columns + first;
    std::int64_t row = to;
    if (args.indices.data != nullptr && to < real) {
      row = integer_at(args.indices, to);
      if (row < 0 || row >= packed.rows) {
        report(args.fault);
        row = -1;
      }
    }
    if (to >= real || row < 0) {
      const T nothing(to >= real ? 0.0f : numerics::float_of(numerics::kNanBits));
      for (int j = 0; j < count; ++j) y[j] = nothing;
      continue;
    }
    const std::uint8_t* bytes = packed.codes + row * packed.row_bytes + first / 8 * format.bits;
    const std::uint8_t* const end = packed.codes + (row + 1) * packed.row_bytes;
    std::uint64_t waiting = 0;
    int num_waiting = 0;
    std::int64_t scaled = -1;
    StoredScale scale;
    for (int j = 0; j < count; ++j) {
      const std::int64_t index =
          format.has_one_scale ? 0 : row / packed.block_rows * blocks + (first + j) / format.block;
      if (index != scaled) {
        scale = stored_scale(packed, index);
        scaled = index;
      }
      while (num_waiting < format.bits && bytes < end) {
        waiting |= std::uint64_t{*bytes++} << num_waiting;
        num_waiting += 8;
      }
      const auto code = static_cast<std::uint32_t>(waiting & mask);
      waiting >>= format.bits;
      num_waiting -= format.bits;
      y[j] = T((element(format, code, scale.zero) * format.element_step) * scale.scale);
    }
  }
}

// A run's numbers as pairs: codes 0,1 2,3 and so on, times the scale.
template <int kWords>
__device__ void dequantize_run(const Word (&codes)[kWords], Word exponent, Word* pairs) {
  // 2^(exponent - 127) / 64, subnormal below 7.
  const Word scale = exponent > 6 ? (exponent - 6) << 7 : Word{1} << exponent;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    Word by_two[2];
    Int8Codes::convert(codes[i], 0, by_two);
    order_by_two(by_two, pairs + 2 * i);
  }
#pragma unroll
  for (int i = 0; i < 2 * kWords; ++i)
    pairs[i] = exponent == numerics::SharedExponent::kNanCode
                   ? 0x7fc07fc0u
                   : multiply_pairs(pairs[i], scale * 0x00010001u);
}

// Tiles of kRows x kColumns codes, a block of kTileThreads threads each. Thread t copies the runs
// t, t + kTileThreads and so on along the tile's rows; a run is as long as 16 bytes of results, so
// that neighbouring threads write neighbouring bytes.
template <int kRows, int kColumns, int kTileThreads, bool kToFloat>
__global__ void __launch_bounds__(kTileThreads)
    dequantize_kernel(const __grid_constant__ DequantizeArgs args) {
  constexpr int kWords = kToFloat ? 1 : 2, kRunCodes = 4 * kWords;
  static_assert(kRunCodes == run_of_tile(kToFloat ? Number::F32 : Number::BF16));
  constexpr int kAcross = kColumns / kRunCodes, kRuns = kRows * kAcross;
  constexpr int kTimes = (kRuns + kTileThreads - 1) / kTileThreads;
  const std::int64_t tiles_across = (args.columns + kColumns - 1) / kColumns;
  const std::int64_t first_row = blockIdx.x / tiles_across * kRows;
  const std::int64_t first_column = blockIdx.x % tiles_across * kColumns;
  const int group_bits = 31 - __clz(args.group);
  // Where a run lies; -1 outside of the matrix.
  const auto place = [&](int time) -> std::int64_t {
    const int run = time * kTileThreads + static_cast<int>(threadIdx.x);
    const std::int64_t row = first_row + run / kAcross;
    const std::int64_t column = first_column + run % kAcross * kRunCodes;
    const bool is_inside =
        (kRuns % kTileThreads == 0 || run < kRuns) && row < args.rows && column < args.columns;
    return is_inside ? row * args.columns + column : -1;
  };
  Word codes[kTimes][kWords], exponents[kTimes];
  // All loads first: a thread waits once for all of them.
#pragma unroll
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t at = place(time);
    if (at < 0) continue;
    const auto* const from = reinterpret_cast<const Word*>(args.codes + at);
    if constexpr (kWords == 2) {
      const uint2 two = __ldcs(reinterpret_cast<const uint2*>(from));
      codes[time][0] = two.x;
      codes[time][1] = two.y;
    } else {
      codes[time][0] = __ldcs(from);
    }
    exponents[time] = __ldg(args.exponents + (at >> group_bits));
  }
#pragma unroll
  for (int time = 0; time < kTimes; ++time) {
    const std::int64_t at = place(time);
    if (at < 0) continue;
    Word pairs[2 * kWords];
    dequantize_run(codes[time], exponents[time], pairs);
    if constexpr (kToFloat)
      __stcs(reinterpret_cast<uint4*>(static_cast<float*>(args.y) + at),
             make_uint4(pairs[0] << 16, pairs[0] & 0xffff0000u, pairs[1] << 16,
                        pairs[1] & 0xffff0000u));
    else
      __stcs(reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(args.y) + at),
             make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
  }
}

// As fast as memory is read and written.
__global__ void stream_kernel(const uint4* from, uint4* to, std::int64_t count) {
  constexpr int kTimes = 4;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTimes * kThreads + threadIdx.x;
  uint4 read[kTimes];
#pragma unroll
  for (int time = 0; time < kTimes; ++time)
    if (first + time * kThreads < count) read[time] = __ldcs(from + first + time * kThreads);
#pragma unroll
  for (int time = 0; time < kTimes; ++time)
    if (first + time * kThreads < count) __stcs(to + first + time * kThreads, read[time]);
}

template <int kRows, int kColumns, int kTileThreads>
void launch_tiles(const DequantizeArgs& args, Stream* stream) {
  const std::int64_t tiles =
      (args.rows + kRows - 1) / kRows * ((args.columns + kColumns - 1) / kColumns);
  const auto grid = static_cast<unsigned>(tiles);
  if (args.to == Number::F32)
    dequantize_kernel<kRows, kColumns, kTileThreads, true>
        <<<grid, kTileThreads, 0, stream_of(stream)>>>(args);
  else
    dequantize_kernel<kRows, kColumns, kTileThreads, false>
        <<<grid, kTileThreads, 0, stream_of(stream)>>>(args);
}

struct KnownTile {
  TileShape shape;
  void (*launch)(const DequantizeArgs&, Stream*);
};
template <int kRows, int kColumns, int kTileThreads>
constexpr KnownTile known_tile() {
  return {{kRows, kColumns, kTileThreads}, launch_tiles<kRows, kColumns, kTileThreads>};
}
// The first is the fastest. kTileShapes lists their shapes for whoever has no GPU.
constexpr KnownTile kTiles[] = {
    known_tile<8, 512, 256>(), known_tile<1, 4096, 256>(), known_tile<4, 1024, 256>(),
    known_tile<8, 512, 128>(), known_tile<8, 512, 512>(),  known_tile<8, 128, 128>(),
    known_tile<16, 64, 128>(), known_tile<32, 32, 128>(),  known_tile<32, 128, 256>(),
    known_tile<64, 64, 256>(), known_tile<64, 16, 128>(),  known_tile<128, 128, 1024>(),
};
constexpr bool lists_every_tile() {
  if (sizeof kTiles / sizeof kTiles[0] != sizeof kTileShapes / sizeof kTileShapes[0]) return false;
  for (std::size_t i = 0; i < sizeof kTiles / sizeof kTiles[0]; ++i)
    if (kTiles[i].shape.rows != kTileShapes[i].rows ||
        kTiles[i].shape.columns != kTileShapes[i].columns ||
        kTiles[i].shape.threads != kTileShapes[i].threads)
      return false;
  return true;
}
static_assert(lists_every_tile());

// Whether the tiles' kernel can do what the general one is asked.
bool is_whole_mxint8(const DecodeArgs& args) {
  const PackedMatrix& packed = args.packed;
  const QuantizeArgs& format = packed.format;
  const std::int64_t group = format.block;
  return format.codec == Codec::Integer && format.bits == 8 && format.low < 0 && format.zero == 0 &&
         format.rule == ScaleBy::SharedExponent && format.element_step == 1.0f / 64 &&
         packed.block_rows == 1 && args.indices.data == nullptr && args.rows.symbol == nullptr &&
         group >= run_of_tile(args.to) && group <= (1 << 20) && (group & (group - 1)) == 0 &&
         format.columns % group == 0;
}

}  // namespace

bool dequantize(const DequantizeArgs& args, Stream* stream) {
  if (args.rows == 0 || args.columns == 0) return true;
  for (const KnownTile& tile : kTiles) {
    const bool is_meant = args.tile.rows == 0 || (args.tile.rows == tile.shape.rows &&
                                                  args.tile.columns == tile.shape.columns &&
                                                  args.tile.threads == tile.shape.threads);
    if (!is_meant) continue;
    tile.launch(args, stream);
    return true;
  }
  return false;
}

void stream_copy(void* to, const void* from, std::int64_t bytes, Stream* stream) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(uint4));
  if (count == 0) return;
  stream_kernel<<<static_cast<unsigned>((count + 4 * kThreads - 1) / (4 * kThreads)), kThreads, 0,
                  stream_of(stream)>>>(static_cast<const uint4*>(from), static_cast<uint4*>(to),
                                       count);
}

void decode(const DecodeArgs& args, Stream* stream) {
  const QuantizeArgs& format = args.packed.format;
  if (args.rows.capacity == 0 || format.columns == 0) return;
  if (is_whole_mxint8(args)) {
    dequantize({.tile = {},
                .codes = args.packed.codes,
                .exponents = args.packed.local,
                .to = args.to,
                .y = args.y,
                .rows = args.rows.capacity,
                .columns = format.columns,
                .group = static_cast<std::int32_t>(format.block)},
               stream);
    return;
  }
  const std::int64_t runs = (format.columns + kRun - 1) / kRun;
  const unsigned blocks = blocks_for(args.rows.capacity * runs, kThreads);
  if (args.to == Number::BF16)
    decode_kernel<__nv_bfloat16><<<blocks, kThreads, 0, stream_of(stream)>>>(args);
  else
    decode_kernel<float><<<blocks, kThreads, 0, stream_of(stream)>>>(args);
}

}  // namespace lathe::engine::cuda
