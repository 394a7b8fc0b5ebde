#pragma once

// Convolutions of floats by an instruction that multiplies bfloat16 numbers: their arguments and
// the table of functions that one way to multiply fills in. Plain structs only: see kernel_table.h.
// How a float is split and what a product of parts leaves out is told in split_table.h.

#include <cstdint>

namespace lathe::engine {

/// Channels and filters of such a convolution are multiples of it.
inline constexpr std::int64_t kWindowGrain = 16;

/// An image whose channels lie side by side, and the windows on it, one pixel apart.
struct SplitFrame {
  std::int64_t height, width, channels;
  std::int64_t rows, columns;          ///< of a window
  std::int64_t top, left;              ///< how far the first window reaches outside
  std::int64_t out_height, out_width;  ///< windows
  /// Pixels from a line to the next where it is laid out with zeros on one side of it, which are
  /// behind a line and in front of the next: width + the larger of left and of what the last
  /// window reaches outside.
  std::int64_t line;
};

/// y[out_height, out_width, n] = the windows of one image times the filters + bias.
///
/// A result has the same bits whatever is computed beside it. Or operands and results are rounded
/// to bfloat16, and there is one product instead of six.
struct SplitWindowArgs {
  SplitFrame frame;
  std::int64_t n;
  bool is_rounded;
  const float* x;
  const std::uint16_t* filters;  ///< as `pack` wrote them
  const float* bias;             ///< or null
  float* y;
  const float* next;  ///< the image that comes after this one, or null
  void* scratch;      ///< scratch_bytes on a cache line
};

/// dw[n, window, channels], n rows of which are `dw_stride` apart, = or += the sum over the windows
/// of some images of dy[window, n] times what is under it. Or both are rounded to bfloat16 before.
struct SplitWindowGradientArgs {
  SplitFrame frame;
  std::int64_t n;
  std::int64_t images;  ///< of x and dy, one behind another
  bool is_rounded;
  const float* x;
  const float* dy;
  float* dw;
  std::int64_t dw_stride;
  bool accumulate;
  void* scratch;  ///< gradient_scratch_bytes for each image, on a cache line
};

/// Filters as panels of `panel` columns, as Kernels::pack_b wrote them: k counts taps, then
/// channels.
struct SplitFilterArgs {
  std::int64_t taps, channels, n;
  std::int64_t columns;  ///< of a window
  bool is_rounded;       ///< as the products they are for are
  std::int64_t panel;
  const float* panels;
  std::uint16_t* filters;
};

/// Magnitudes of what a gradient multiplies such that no sum of 2^24 products overflows.
inline constexpr float kMostSplitGradient = 0x1p50f;

/// One way to multiply.
struct SplitWindowKernels {
  const char* name;
  std::int64_t (*filters_size)(std::int64_t taps, std::int64_t channels, std::int64_t n);
  /// Numbers are below kMostSplitWeight.
  void (*pack)(const SplitFilterArgs&);
  std::int64_t (*scratch_bytes)(const SplitFrame&, std::int64_t n);
  /// Whether it was done: where a number of x is not below kMostSplit, y stays as it is.
  bool (*multiply)(const SplitWindowArgs&);
  std::int64_t (*gradient_scratch_bytes)(const SplitFrame&, std::int64_t n);
  /// Whether it was done: where a number is not below kMostSplitGradient, dw stays as it is.
  bool (*add_gradient)(const SplitWindowGradientArgs&);
};

}  // namespace lathe::engine
