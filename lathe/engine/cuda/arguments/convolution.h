#pragma once

#include "lathe/engine/cuda/arguments/elementwise.h"

// Convolutions as products whose rows are pixels of the result and whose depth goes through the
// taps of a window, and what brings images and filters into the order that they read.
namespace lathe::engine::cuda {

/// Which pixel of the images a tap of a window reads, along one axis: that of number
/// (place * step + offset + tap * spread) / divisor, where this is a whole number inside. A
/// convolution has a divisor of 1; the gradient of its input goes through the result, against the
/// taps, and has the stride there.
struct WindowAxis {
  std::int32_t taps = 1;
  std::int32_t step = 1, offset = 0, spread = 1, divisor = 1;
};

/// Bytes of depth that a tile of operands holds, and what channels and depth are multiples of:
/// chunks of 16 bytes are copied at once.
inline constexpr int kDepthBytes = 128, kChunkBytes = 16;
inline constexpr std::int64_t element_bytes(Precision precision) {
  return precision == Precision::Bf16 ? 2 : 4;
}
inline constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}
inline constexpr std::int64_t padded_channels(std::int64_t channels, Precision precision) {
  return round_up(channels, kChunkBytes / element_bytes(precision));
}
inline constexpr std::int64_t padded_depth(std::int64_t depth, Precision precision) {
  return round_up(depth, kDepthBytes / element_bytes(precision));
}

/// Rows and columns of a block's tile, and how many blocks share its depth: they form a cluster,
/// which adds up their sums in order.
struct ConvolutionTile {
  std::int32_t rows = 128, columns = 64, parts = 1;
};
inline constexpr int kMostConvolutionParts = 8;
/// The shapes that there are kernels for; the last two in bfloat16 on Hopper alone.
inline constexpr std::int32_t kConvolutionShapes[][2] = {{128, 128}, {128, 64},  {64, 64},
                                                         {64, 32},   {128, 256}, {256, 128}};
inline constexpr int kConvolutionShapesOfAll = 4;

/// Microseconds on an H200, about: of a step of depth where a multiprocessor has several blocks,
/// where a block is alone and waits for its copies, and of what follows all steps.
struct ConvolutionCost {
  double step, step_alone, results;
};
inline constexpr ConvolutionCost kConvolutionCosts[kConvolutionShapesOfAll] = {
    {0.32, 0.40, 1.2}, {0.20, 0.30, 0.8}, {0.14, 0.22, 0.5}, {0.12, 0.22, 0.5}};
inline constexpr double kMeetingCost = 0.4;  ///< of blocks that share a depth

/// The tile that should be done soonest on so many multiprocessors, by how many blocks the fullest
/// of them gets. Only Hopper has clusters.
inline constexpr ConvolutionTile choose_tile(std::int64_t rows, std::int64_t columns,
                                             std::int64_t depth_tiles, int multiprocessors,
                                             bool has_clusters) {
  ConvolutionTile best;
  double least = 0;
  for (int i = 0; i < kConvolutionShapesOfAll; ++i) {
    const auto& shape = kConvolutionShapes[i];
    const ConvolutionCost& cost = kConvolutionCosts[i];
    const std::int64_t tiles =
        (rows + shape[0] - 1) / shape[0] * ((columns + shape[1] - 1) / shape[1]);
    for (std::int32_t parts = 1; parts <= (has_clusters ? kMostConvolutionParts : 1); parts *= 2) {
      if (parts > depth_tiles) break;
      const std::int64_t blocks = tiles * parts;
      const auto each = static_cast<double>((blocks + multiprocessors - 1) / multiprocessors);
      const auto share = static_cast<double>((depth_tiles + parts - 1) / parts);
      const double steps = each * share * cost.step, alone = share * cost.step_alone;
      const double time =
          (steps > alone ? steps : alone) + each * cost.results + (parts > 1 ? kMeetingCost : 0.0);
      if (least != 0 && time >= least) continue;
      least = time;
      best = {shape[0], shape[1], parts};
    }
  }
  return best;
}

/// Images [count, height, width, channels] and the windows over them.
struct ConvolutionSource {
  const void* x = nullptr;  ///< of bfloat16 with Bf16, else floats; channels are padded
  std::int32_t height = 0, width = 0, channels = 0;
  std::int32_t depth = 0;  ///< of a filter over them, padded; 0: there are none
  WindowAxis axes[2];
};

/// y = map(windows of x . filters + bias + residual), where windows may be of two images, one after
/// the other.
struct ConvolutionArgs {
  Precision precision = Precision::Float32;
  ConvolutionSource first, second;
  const void* filters = nullptr;  ///< as x: [columns, depth], taps before channels
  const float* bias = nullptr;
  const void* residual = nullptr;    ///< as y, with its channels last
  Number residual_as = Number::F32;  ///< or BF16
  float* y = nullptr;                ///< null: nobody asks
  std::uint16_t* y_half = nullptr;   ///< y as bfloat16; null: nobody asks
  bool are_planes = false;           ///< y is [count, columns, height, width]
  Map map = Map::Identity;
  std::int32_t count = 0;                               ///< of images
  std::int32_t y_height = 0, y_width = 0, columns = 0;  ///< of y
  ConvolutionTile tile = {.rows = 0};                   ///< no rows: the kernel chooses
  bool may_begin_early = false;  ///< filters and bias are what no launch before writes
  constexpr std::int32_t depth() const { return first.depth + second.depth; }
};

/// The same where groups of channels do not meet: filters are [columns, taps, channels of a group]
/// floats, and x has its own channels.
struct GroupedConvolutionArgs {
  ConvolutionArgs all;
  Number x_as = Number::F32;  ///< or BF16
  std::int32_t groups = 1;
};

/// Filters and their bias as convolutions read them. With a norm behind them, they are multiplied
/// by its factor, norm_weight / sqrt(norm_variance + eps).
struct FiltersArgs {
  const float* weight = nullptr;  ///< [outputs, inputs, taps]
  std::int64_t outputs = 0, inputs = 0, rows_of_taps = 0, taps_of_row = 0;
  /// For the gradient of the input: filters are of inputs, and outputs are their channels.
  bool is_turned = false;
  /// Two pixels of four channels each are one of eight: the first tap of a row is this one of the
  /// two. Negative: they are not.
  std::int32_t shift = -1;
  Precision precision = Precision::Float32;
  std::int64_t channels = 0, depth = 0;  ///< of the filters, padded
  std::int64_t pitch = 0;                ///< elements from one filter to the next
  void* filters = nullptr;
  const float* bias = nullptr;  ///< null: zeros
  const float* norm_weight = nullptr;
  const float* norm_bias = nullptr;
  const float* norm_mean = nullptr;
  const float* norm_variance = nullptr;
  double eps = 0;
  float* new_bias = nullptr;  ///< null: it stays what it is
  bool adds_bias = false;     ///< to what is there
};

/// y[pixels, to_channels] = x with its channels last and zeros behind them, as products of the
/// precision read it; x is [count, channels, pixels] or [count, pixels, channels].
struct ImagesArgs {
  const void* x = nullptr;
  Number x_as = Number::F32;  ///< or BF16
  bool are_planes = false;
  void* y = nullptr;
  bool is_half = false;  ///< y is bfloat16
  std::int64_t count = 0, pixels = 0, channels = 0, to_channels = 0;
};

/// dw[outputs, taps, inputs] summed over the pixels of dy, in parts: part p has every pixel of its
/// range. dy is [pixels, outputs] and x [count, height, width, inputs].
struct FilterGradientArgs {
  Precision precision = Precision::Float32;
  const void* dy = nullptr;
  const void* x = nullptr;
  Number dy_as = Number::F32, x_as = Number::F32;  ///< or BF16
  std::int32_t count = 0, height = 0, width = 0, inputs = 0, outputs = 0, groups = 1;
  std::int32_t y_height = 0, y_width = 0;
  WindowAxis axes[2];
  std::int32_t parts = 1;
  float* sums = nullptr;  ///< [parts, outputs, taps, inputs of a group]
  float* dw = nullptr;    ///< [outputs, inputs of a group, taps]
};

}  // namespace lathe::engine::cuda
