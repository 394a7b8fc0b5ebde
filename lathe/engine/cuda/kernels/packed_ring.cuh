#pragma once

// How packed weights come to tensor cores, each code read once.
//
// A block takes 16 outputs for each of its tiles and all of their inputs, which its warps share by
// chunks: 64 bytes of a row's codes. A warp keeps the codes of several chunks on their way into a
// ring of its own, with the activations that they meet. What tensor cores sum at once must share a
// scale: the four lanes that have a row read the words of one group. An activation is the sum of
// several columns of the product.

#include "lathe/engine/cuda/kernels/packed_linear.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {

inline constexpr int kTileRows = 16, kTileColumns = 8;  ///< of a tensor core's result
inline constexpr int kChunkBytes = 64, kChunkWords = kChunkBytes / 4;

/// What a block computes: its warps' tiles.
struct PackedBlock {
  int outputs, columns, warps;
};

/// What a launch needs beside its arguments.
struct PackedLayout {
  PackedScales scales;
  const uint4* columns = nullptr;  ///< activations as the kernel's lanes read them
  int columns_of_row = 1;          ///< terms of an activation
  int rows_at_once = 1;            ///< rows of x that a block takes
  int scale_bytes = 0;             ///< of an output in shared memory, a multiple of 16 and 16 more
  bool has_zeros = false;          ///< zero points lie behind the scales
};

/// Which word of a chunk is word i of a lane: 4 or 2 groups that each have a scale share a chunk.
__device__ inline int word_of_chunk(int groups, int lane, int i) {
  const int t = lane % 4;
  return groups == 4 ? 4 * i + t : i / 2 * 8 + 2 * t + i % 2;
}

/// Where 16 bytes of a row of codes lie in a ring, so that rows that lanes read at once have
/// different banks.
__device__ inline int unit_place(int row, int unit) {
  return row * 4 + (unit ^ ((row & 2) | (row >> 2 & 1)));
}

/// The words of a lane in a row of a chunk, as word_of_chunk numbers them.
template <int kGroups>
__device__ void read_words(const uint4* chunk, int row, int lane, Word (&words)[4]) {
  const int t = lane % 4;
  if constexpr (kGroups == 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = reinterpret_cast<const Word*>(chunk + unit_place(row, i))[t];
  } else {
    static_assert(kGroups == 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint2 two =
          reinterpret_cast<const uint2*>(chunk + unit_place(row, 2 * i + t / 2))[t % 2];
      words[2 * i] = two.x;
      words[2 * i + 1] = two.y;
    }
  }
}

__device__ inline int sum_place(const PackedBlock& block, int warp, int column, int output) {
  return (warp * block.columns + column) * (block.outputs + 1) + output;
}

/// Joins the warps' sums and the columns of each row, the smallest first, and finishes the rows.
static __device__ __noinline__ void write_outputs(const PackedLinearArgs& args,
                                                  const PackedLayout& layout,
                                                  const PackedBlock block, std::int64_t first_row,
                                                  std::int64_t real, const float* sums) {
  const int rows =
      static_cast<int>(min(std::int64_t{layout.rows_at_once}, args.rows.capacity - first_row));
  for (int i = threadIdx.x; i < rows * block.outputs; i += blockDim.x) {
    const int row = i / block.outputs, of_block = i % block.outputs;
    const std::int64_t output = std::int64_t{blockIdx.x} * block.outputs + of_block;
    if (output >= args.n) continue;
    float sum = 0;
    if (first_row + row < real)
      for (int part = layout.columns_of_row - 1; part >= 0; --part)
        for (int warp = 0; warp < block.warps; ++warp)
          sum += sums[sum_place(block, warp, row * layout.columns_of_row + part, of_block)];
    finish_output(args, first_row + row, output, sum, first_row + row < real);
  }
}

/// Codes and activations on their way to a warp, in shared memory. `kColumnUnits`: of a chunk's
/// activations, 16 bytes each. `kExponents`: scales are exponents; others lie there as floats, with
/// zero points behind them.
template <bool kExponents, int kTilesM, int kTilesN, int kColumnUnits, int kWarps, int kStages>
class PackedRing {
  static constexpr int kOutputs = kTileRows * kTilesM, kColumns = kTileColumns * kTilesN;
  static constexpr int kCodeUnits = kOutputs * 4;
  static constexpr int kStageUnits = kCodeUnits + (kColumnUnits + 7) / 8 * 8;

 public:
  static PackedLayout layout(const PackedLinearArgs& args, int columns_of_row) {
    PackedLayout result;
    result.scales = scales_of(args.weight);
    result.columns = reinterpret_cast<const uint4*>(args.scratch);
    result.columns_of_row = columns_of_row;
    result.has_zeros = args.code == PackedCode::Unsigned4;
    result.rows_at_once = kColumns / columns_of_row;
    result.scale_bytes =
        (result.scales.of_output * (kExponents ? 1 : static_cast<int>(sizeof(float))) + 15) / 16 *
            16 +
        16;
    return result;
  }
  /// Of as many rows as a block takes.
  static std::int64_t row_blocks(const PackedLinearArgs& args, const PackedLayout& layout) {
    return (args.rows.capacity + layout.rows_at_once - 1) / layout.rows_at_once;
  }
  template <typename Kernel>
  static void launch(Kernel kernel, const PackedLinearArgs& args, const PackedLayout& layout,
                     Stream* stream) {
    constexpr std::size_t kRing = sizeof(uint4) * kWarps * kStages * kStageUnits;
    constexpr std::size_t kSums = sizeof(float) * kWarps * kColumns * (kOutputs + 1);
    const std::size_t scales =
        static_cast<std::size_t>(kOutputs) * layout.scale_bytes * (layout.has_zeros ? 2 : 1);
    const dim3 grid(static_cast<unsigned>((args.n + kOutputs - 1) / kOutputs),
                    static_cast<unsigned>(row_blocks(args, layout)));
    launch_early(args.may_begin_early, kernel, grid, kWarps * kWarp,
                 (kRing > kSums ? kRing : kSums) + scales, stream, args, layout);
  }

  /// Asks for the first chunks, and for activations when they are there.
  __device__ PackedRing(const PackedLinearArgs& args, const PackedLayout& layout, int chunks,
                        uint4* room)
      : args_(args),
        layout_(layout),
        chunks_(chunks),
        first_row_(std::int64_t{blockIdx.y} * layout.rows_at_once),
        room_(room),
        ring_(room + warp() * (kStages * kStageUnits)),
        scales_(reinterpret_cast<std::byte*>(room + kWarps * kStages * kStageUnits)),
        columns_(layout.columns + std::int64_t{blockIdx.y} * chunks * kColumnUnits + lane()) {
    const int first_output = static_cast<int>(blockIdx.x) * kOutputs;
#pragma unroll
    for (int i = 0; i < kCodeUnits / kWarp; ++i) {
      const std::int64_t output = min(std::int64_t{first_output} + i * 8 + lane() / 4, args.n - 1);
      codes_[i] = args.weight.codes + output * args.weight.row_bytes + lane() % 4 * 16;
    }
    copy_scales(first_output);
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
      load_codes(stage, warp() + stage * kWarps);
      commit_copies();
    }
    let_next_begin();
    wait_for_previous();
    real_ = real_size(args.rows);
    // The first activations through registers: copies end in order, and codes are on their way.
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage)
      load_columns(stage, warp() + stage * kWarps,
                   [](uint4* to, const uint4* from) { *to = __ldcg(from); });
    wait_for_copies<kStages - 2>();  // the first has all scales
    __syncthreads();
  }

  /// Calls use(chunk, codes, activations) for the warp's chunks.
  template <typename Use>
  __device__ void for_chunks(const Use& use) {
    int stage = 0;
    for (int chunk = first_row_ < real_ ? warp() : chunks_; chunk < chunks_; chunk += kWarps) {
      wait_for_copies<kStages - 2>();
      __syncwarp();
      const int next = stage == 0 ? kStages - 1 : stage - 1;
      load_codes(next, chunk + (kStages - 1) * kWarps);
      load_columns(next, chunk + (kStages - 1) * kWarps,
                   [](uint4* to, const uint4* from) { copy_async(to, from); });
      commit_copies();
      const uint4* const codes = ring_ + stage * kStageUnits;
      use(chunk, codes, codes + kCodeUnits);
      stage = stage == kStages - 1 ? 0 : stage + 1;
    }
  }

  /// Of the lane's output of a tile: the upper or the lower half has it.
  __device__ float scale(int tile, int half, int index) const {
    const std::byte* const from = of_output(tile, half, scales_);
    if constexpr (kExponents)
      return exponent_scale(static_cast<Word>(from[index]), layout_.scales.step);
    else
      return reinterpret_cast<const float*>(from)[index];
  }
  /// 128 + its zero point as a pair of bfloat16.
  __device__ Word zero(int tile, int half, int index) const {
    return reinterpret_cast<const Word*>(
        of_output(tile, half, scales_ + kOutputs * layout_.scale_bytes))[index];
  }

  /// Joins the warps' sums, [tile of outputs][tile of columns] as tensor cores leave them.
  __device__ void finish(const float (&sums)[kTilesM][kTilesN][4]) {
    wait_for_copies<0>();
    __syncthreads();  // the rings are free
    constexpr PackedBlock kBlock{kOutputs, kColumns, kWarps};
    auto* const to = reinterpret_cast<float*>(room_);
#pragma unroll
    for (int m = 0; m < kTilesM; ++m)
#pragma unroll
      for (int n = 0; n < kTilesN; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          to[sum_place(kBlock, warp(), n * kTileColumns + lane() % 4 * 2 + i % 2,
                       m * kTileRows + i / 2 * 8 + lane() / 4)] = sums[m][n][i];
    __syncthreads();
    write_outputs(args_, layout_, kBlock, first_row_, real_, to);
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ const std::byte* of_output(int tile, int half, const std::byte* scales) const {
    return scales + (tile * kTileRows + half * 8 + lane() / 4) * layout_.scale_bytes;
  }

  __device__ void load_codes(int stage, int chunk) {
    if (chunk >= chunks_) return;
    uint4* const to = ring_ + stage * kStageUnits + unit_place(lane() / 4, lane() % 4);
#pragma unroll
    for (int i = 0; i < kCodeUnits / kWarp; ++i)
      copy_async(to + i * kWarp, codes_[i] + chunk * kChunkBytes);
  }
  template <typename Copy>
  __device__ void load_columns(int stage, int chunk, const Copy& copy) {
    if (chunk >= chunks_) return;
    uint4* const to = ring_ + stage * kStageUnits + kCodeUnits + lane();
    const uint4* const from = columns_ + std::int64_t{chunk} * kColumnUnits;
#pragma unroll
    for (int i = 0; i < kColumnUnits; i += kWarp)
      if (i + kWarp <= kColumnUnits || i + lane() < kColumnUnits) copy(to + i, from + i);
  }
  // A thread asks for several floats before it waits for one.
  __device__ void copy_scales(int first_output) {
    constexpr int kAtOnce = 4, kStride = kWarps * kWarp;
    const PackedScales& scales = layout_.scales;
    const int real = static_cast<int>(min(std::int64_t{kOutputs}, args_.n - first_output));
    const int of_output = scales.of_output, count = real * of_output;
    const std::int64_t first = std::int64_t{first_output} * of_output;
    const auto place = [&](int i, int each) {
      return scales_ + i / of_output * layout_.scale_bytes + i % of_output * each;
    };
    if constexpr (kExponents) {
      const auto* const from = static_cast<const std::byte*>(scales.from) + first;
      if (of_output % 16 == 0)
        for (int i = threadIdx.x * 16; i < count; i += kStride * 16)
          copy_async(place(i, 1), from + i);
      else
        for (int i = threadIdx.x; i < count; i += kStride) *place(i, 1) = from[i];
    } else {
      for (int i = threadIdx.x; i < count; i += kStride * kAtOnce) {
        Word bits[kAtOnce];
        float zeros[kAtOnce] = {};
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const std::int64_t at = scales.is_one ? 0 : first + min(i + j * kStride, count - 1);
          bits[j] = load_scale(scales, at);
          if (scales.zeros != nullptr) zeros[j] = __ldg(scales.zeros + at);
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          if (i + j * kStride >= count) break;
          std::byte* const to = place(i + j * kStride, sizeof(float));
          *reinterpret_cast<float*>(to) = scale_of(scales, bits[j]);
          if (layout_.has_zeros)
            *reinterpret_cast<Word*>(to + kOutputs * layout_.scale_bytes) = zero_pair(zeros[j]);
        }
      }
    }
  }

  const PackedLinearArgs& args_;
  const PackedLayout& layout_;
  const int chunks_;
  const std::int64_t first_row_;
  std::int64_t real_ = 0;
  uint4* const room_;
  uint4* const ring_;
  std::byte* const scales_;
  const uint4* const columns_;
  const std::uint8_t* codes_[kCodeUnits / kWarp];
};

}  // namespace lathe::engine::cuda
