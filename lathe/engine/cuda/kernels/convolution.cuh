#pragma once

// A convolution as a product: rows are pixels of the result, columns are filters, and the depth
// goes through the taps of a window and their channels. Nothing is laid out before: a thread copies
// chunks of 16 bytes of the pixels under its rows' windows, zeros where there is no pixel.
//
// Blocks of one cluster share a tile's depth; each leaves its sums in its shared memory, and adds
// up those of all for its share of the rows, in order.

#include "lathe/engine/cuda/kernels/convolution_results.cuh"
#include "lathe/engine/cuda/kernels/convolution_tile.cuh"
#include "lathe/engine/cuda/kernels/early_launch.cuh"

namespace lathe::engine::cuda {

/// `Open`: products of so many tiles may be under way when the next one begins, whose copies have
/// a stage less each then.
template <Precision OfPrecision, int OfRows, int OfColumns, int OfStages, int Open = 0>
struct ConvolutionShape {
  static constexpr int kOpen = Open;
  static constexpr int kAhead = OfStages - 1 - Open;  ///< tiles that are copied ahead
  static constexpr Precision kPrecision = OfPrecision;
  static constexpr int kRows = OfRows, kColumns = OfColumns, kStages = OfStages;
  static constexpr int kThreads = kRows * 2;
  static constexpr int kElement = kPrecision == Precision::Bf16 ? 2 : 4;
  static constexpr int kChunks = kDepthBytes / kChunkBytes;
  static constexpr int kRowsAtOnce = kThreads / kChunks;
  static constexpr int kStageBytes = (kRows + kColumns) * kDepthBytes;
  static constexpr int kSumStride = kColumns + 8;  // rows of sums begin in different banks
  static constexpr int kSumBytes = kRows * kSumStride * 4;
  static constexpr int kAlignment = 1024;
  static constexpr int kBytes =
      (kStages * kStageBytes > kSumBytes ? kStages * kStageBytes : kSumBytes) + kAlignment;
  static constexpr int kBlocks = kBytes > 112 << 10 ? 1 : 2;  ///< of a multiprocessor
};

/// The windows of the rows of a tile that one thread copies chunks of, and where in their depth the
/// next copy is. All of it is in registers: what lies in memory would be read again behind every
/// copy.
template <typename Shape>
class WindowCopies {
 public:
  static constexpr int kTimes = Shape::kRows / Shape::kRowsAtOnce;

  __device__ WindowCopies(const ConvolutionArgs& args, int first_row, int first_tile)
      : args_(args),
        first_row_(first_row),
        next_(first_tile),
        second_(args.first.depth * Shape::kElement / kDepthBytes) {
    if (first_tile < second_)
      begin(args.first, first_tile);
    else
      begin(args.second, first_tile - second_);
  }

  /// Copies the next tile to an address in shared memory, which belongs to this thread's chunk of
  /// its first row.
  __device__ void copy(unsigned to) {
    if (next_++ == second_) begin(args_.second, 0);
    const int below = down_ * down_spread_, beside = across_ * across_spread_;
    const int further = (below * width_ + beside) * chunks_ + channel_;
    const bool is_tap = down_ < down_taps_;
#pragma unroll
    for (int time = 0; time < kTimes; ++time) {
      int line = tops_[time] + below, column = lefts_[time] + beside;
      int place = places_[time] + further;
      bool is_there = is_tap;
      if (is_divided_) is_there = divide(line, column, place, places_[time]) && is_there;
      is_there = is_there && static_cast<unsigned>(line) < static_cast<unsigned>(height_) &&
                 static_cast<unsigned>(column) < static_cast<unsigned>(width_);
      copy_async(to + time * Shape::kRowsAtOnce * kDepthBytes,
                 x_ + (is_there ? std::int64_t{place} * kChunkBytes : 0),
                 is_there ? kChunkBytes : 0);
    }
    channel_ += Shape::kChunks;
    while (channel_ >= chunks_) {
      channel_ -= chunks_;
      if (++across_ == across_taps_) {
        across_ = 0;
        ++down_;
      }
    }
  }

 private:
  static constexpr int kOutside = -(1 << 29);

  // For the gradient of the input, whose places are those of images alone.
  __device__ bool divide(int& line, int& column, int& place, int image) const {
    const int down = source_->axes[0].divisor, across = source_->axes[1].divisor;
    if (line < 0 || column < 0 || line % down != 0 || column % across != 0) return false;
    line /= down;
    column /= across;
    place = image + (line * width_ + column) * chunks_ + channel_;
    return true;
  }

  __device__ void begin(const ConvolutionSource& source, int tile) {
    const int chunk = static_cast<int>(threadIdx.x) % Shape::kChunks;
    const int own = static_cast<int>(threadIdx.x) / Shape::kChunks;
    const WindowAxis &rows = source.axes[0], &columns = source.axes[1];
    source_ = &source;
    x_ = static_cast<const std::byte*>(source.x);
    chunks_ = source.channels * Shape::kElement / kChunkBytes;
    height_ = source.height;
    width_ = source.width;
    down_taps_ = rows.taps;
    across_taps_ = columns.taps;
    down_spread_ = rows.spread;
    across_spread_ = columns.spread;
    is_divided_ = rows.divisor != 1 || columns.divisor != 1;
    const int plane = args_.y_height * args_.y_width, num_rows = args_.count * plane;
#pragma unroll
    for (int time = 0; time < kTimes; ++time) {
      const int row = first_row_ + own + time * Shape::kRowsAtOnce;
      const int image = row / plane, pixel = row - image * plane, line = pixel / args_.y_width;
      const int top = line * rows.step + rows.offset;
      const int left = (pixel - line * args_.y_width) * columns.step + columns.offset;
      const int first = image * height_ * width_;
      places_[time] = (is_divided_ ? first : first + top * width_ + left) * chunks_;
      tops_[time] = row < num_rows ? top : kOutside;
      lefts_[time] = left;
    }
    const int at = tile * Shape::kChunks + chunk, tap = at / chunks_;
    channel_ = at - tap * chunks_;
    down_ = tap / across_taps_;
    across_ = tap - down_ * across_taps_;
  }

  const ConvolutionArgs& args_;
  const ConvolutionSource* source_;
  const std::byte* x_;
  int first_row_;
  int next_, second_;  // tiles of depth: the next one, the first of the second images
  int chunks_, height_, width_;
  int down_taps_, across_taps_, down_spread_, across_spread_;
  bool is_divided_;
  int tops_[kTimes], lefts_[kTimes];  // the window's first pixel
  int places_[kTimes];                // its chunk, or that of the image
  int channel_, down_, across_;       // of the next tile
};

/// The filters of a tile's columns that one thread copies chunks of.
template <typename Shape>
class FilterCopies {
 public:
  static constexpr int kTimes = (Shape::kColumns + Shape::kRowsAtOnce - 1) / Shape::kRowsAtOnce;

  __device__ FilterCopies(const ConvolutionArgs& args, int first_column, int first_tile) {
    const int chunk = static_cast<int>(threadIdx.x) % Shape::kChunks;
    const int own = static_cast<int>(threadIdx.x) / Shape::kChunks;
    const std::int64_t pitch = std::int64_t{args.depth()} * Shape::kElement;
    step_ = pitch * Shape::kRowsAtOnce;
    left_ = args.columns - first_column - own;
    from_ = static_cast<const std::byte*>(args.filters) +
            (left_ > 0 ? first_column + own : 0) * pitch +
            (std::int64_t{first_tile} * Shape::kChunks + chunk) * kChunkBytes;
  }
  __device__ void copy(unsigned to) {
#pragma unroll
    for (int time = 0; time < kTimes; ++time) {
      const bool is_there = time * Shape::kRowsAtOnce < left_;
      copy_async(to + time * Shape::kRowsAtOnce * kDepthBytes,
                 from_ + (is_there ? time * step_ : 0), is_there ? kChunkBytes : 0);
    }
    from_ += kDepthBytes;
  }

 private:
  const std::byte* from_;
  std::int64_t step_;  // bytes to this thread's next column
  int left_;           // columns from this thread's first one on
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    convolution_kernel(const __grid_constant__ ConvolutionArgs args) {
  using Products = TileProducts<Shape::kPrecision, Shape::kColumns>;
  // The largest tiles are for those who have products of a group.
  if constexpr (Shape::kOpen > 0 && !Products::kIsGroup) return;
  extern __shared__ std::byte shared_room[];
  std::byte* const room =
      shared_room +
      (Shape::kAlignment - shared_address(shared_room) % Shape::kAlignment) % Shape::kAlignment;
  const int parts = args.tile.parts, part = static_cast<int>(blockIdx.x) % parts;
  const int tile = static_cast<int>(blockIdx.x) / parts;
  const int across = (args.columns + Shape::kColumns - 1) / Shape::kColumns;
  const int first_row = tile / across * Shape::kRows;
  const int first_column = tile % across * Shape::kColumns;
  const int all = args.depth() * Shape::kElement / kDepthBytes;
  const int begin = all * part / parts, num_tiles = all * (part + 1) / parts - begin;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto rows_at = [&](int stage) { return room + stage * Shape::kStageBytes; };
  const auto filters_at = [&](int stage) { return rows_at(stage) + Shape::kRows * kDepthBytes; };
  // Where this thread's first chunk lies in a tile: rows that it copies are multiples of 8 apart.
  const unsigned own = shared_address(room) + place_of_chunk(static_cast<int>(threadIdx.x) / 8,
                                                             static_cast<int>(threadIdx.x) % 8);
  const auto copy_to = [&](int stage) {
    return own + static_cast<unsigned>(stage * Shape::kStageBytes);
  };
  constexpr unsigned kFiltersBehind = Shape::kRows * kDepthBytes;

  // Filters first: no launch before writes them.
  FilterCopies<Shape> filters(args, first_column, begin);
#pragma unroll
  for (int stage = 0; stage < Shape::kAhead; ++stage)
    if (stage < num_tiles) filters.copy(copy_to(stage) + kFiltersBehind);
  WindowCopies<Shape> windows(args, first_row, begin);
  typename Products::Held held = {};
  typename Products::Sums sums;
#pragma unroll
  for (Accumulator& four : sums)
#pragma unroll
    for (float& sum : four) sum = 0;
  let_next_begin();
  wait_for_previous();
#pragma unroll 1
  for (int stage = 0; stage < Shape::kAhead; ++stage) {
    if (stage < num_tiles) windows.copy(copy_to(stage));
    commit_copies();
  }
  int stage = 0, to = Shape::kAhead;
#pragma unroll 1
  for (int i = 0; i < num_tiles; ++i) {
    wait_for_copies<Shape::kAhead - 1>();
    Products::template await<Shape::kOpen>(held);  // the tile whose place the next copies take
    Products::publish();
    __syncthreads();
    Products::begin(rows_at(stage), filters_at(stage), warp, lane, held, sums);
    if (i + Shape::kAhead < num_tiles) {
      filters.copy(copy_to(to) + kFiltersBehind);
      windows.copy(copy_to(to));
    }
    commit_copies();
    stage = stage + 1 == Shape::kStages ? 0 : stage + 1;
    to = to + 1 == Shape::kStages ? 0 : to + 1;
  }
  Products::template await<0>(held);
  pin(sums);
  wait_for_copies<0>();
  __syncthreads();

  auto* const sums_of_tile = reinterpret_cast<float*>(room);
#pragma unroll
  for (int n = 0; n < Products::kBlocks; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float2*>(
          sums_of_tile + (warp * 16 + lane / 4 + half * 8) * Shape::kSumStride + n * 8 +
          lane % 4 * 2) = make_float2(sums[n][2 * half], sums[n][2 * half + 1]);
  meet_parts(parts);
  write_tile<Shape>(args, sums_of_tile, first_row, first_column, part, parts);
  if (parts > 1) meet_parts(parts);  // others may still read what lies here
}

template <typename Shape>
void launch_convolution(const ConvolutionArgs& args, Stream* stream) {
  static const bool is_hopper = device_attribute(cudaDevAttrComputeCapabilityMajor) == 9;
  static const cudaError_t is_allowed = cudaFuncSetAttribute(
      convolution_kernel<Shape>, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes);
  static_cast<void>(is_allowed);
  const std::int64_t rows = std::int64_t{args.count} * args.y_height * args.y_width;
  const std::int64_t blocks = (rows + Shape::kRows - 1) / Shape::kRows *
                              ((args.columns + Shape::kColumns - 1) / Shape::kColumns) *
                              args.tile.parts;
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(Shape::kThreads);
  config.dynamicSmemBytes = Shape::kBytes;
  config.stream = stream_of(stream);
  config.attrs = attributes;
  if (args.tile.parts > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(args.tile.parts);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  }
  if (args.may_begin_early && is_hopper) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchKernelEx(&config, convolution_kernel<Shape>, args);
}

/// By the tile of the arguments.
template <Precision P>
void launch_tile(const ConvolutionArgs& args, Stream* stream) {
  if constexpr (P == Precision::Bf16) {
    if (args.tile.columns == 256)
      return launch_convolution<ConvolutionShape<P, 128, 256, 4, 1>>(args, stream);
    if (args.tile.rows == 256)
      return launch_convolution<ConvolutionShape<P, 256, 128, 4, 1>>(args, stream);
  }
  if (args.tile.rows == 128 && args.tile.columns == 128)
    return launch_convolution<ConvolutionShape<P, 128, 128, 3>>(args, stream);
  if (args.tile.rows == 128)
    return launch_convolution<ConvolutionShape<P, 128, 64, 4>>(args, stream);
  if (args.tile.columns == 64)
    return launch_convolution<ConvolutionShape<P, 64, 64, 6>>(args, stream);
  launch_convolution<ConvolutionShape<P, 64, 32, 8>>(args, stream);
}
void convolution_bf16(const ConvolutionArgs& args, Stream* stream);
void convolution_tf32(const ConvolutionArgs& args, Stream* stream);
void convolution_float(const ConvolutionArgs& args, Stream* stream);

}  // namespace lathe::engine::cuda
