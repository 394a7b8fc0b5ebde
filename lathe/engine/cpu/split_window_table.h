#pragma once

// Convolutions of floats by an instruction that multiplies bfloat16 numbers: their arguments and
// the table of functions that one way to multiply fills in. Plain structs only: see kernel_table.h.
// How a float is split and what a product of parts leaves out is told in split_table.h.

#include <cstdint>

namespace lathe::engine {

/// Channels and filters of such a convolution are multiples of it.
inline constexpr std::int64_t kWindowGrain = 16;

/// Numbers of images, and where they are written: as floats or, in products that are rounded, as
/// bfloat16 numbers.
struct Lying {
  const void* at;
  bool is_narrow;
};
struct Written {
  void* at;
  bool is_narrow;
};

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

/// A norm and relu in front of a convolution: max(0, (x - center) slope + bias + residual), of
/// which the first three are numbers for each channel.
struct WindowFront {
  const float* center;  ///< or null: nothing is in front
  const float* slope;
  const float* bias;
  Lying residual;  ///< or null
  float* made;     ///< where it is kept, or null
};

/// y[out_height, out_width, n] = the windows of one image times the filters + bias.
///
/// A result has the same bits whatever is computed beside it. Or operands and results are rounded
/// to bfloat16, and there is one product instead of six.
struct SplitWindowArgs {
  SplitFrame frame;
  std::int64_t n;
  bool is_rounded;
  Lying x;
  const std::uint16_t* filters;  ///< as `pack` wrote them
  const float* bias;             ///< or null
  Written y;
  const void* next;  ///< the image that comes after this one, or null
  void* scratch;     ///< scratch_bytes on a cache line
  // Where numbers are rounded:
  WindowFront front = {};
  double* moments = nullptr;  ///< [2, n], or null: means and sums of squared distances from them
};

/// dw[n, window, channels], n rows of which are `dw_stride` apart, = or += the sum over the windows
/// of some images of dy[window, n] times what is under it. Or both are rounded to bfloat16 before.
struct SplitWindowGradientArgs {
  SplitFrame frame;
  std::int64_t n;
  std::int64_t images;  ///< of x and dy, one behind another
  bool is_rounded;
  Lying x;
  Lying dy;
  float* dw;
  std::int64_t dw_stride;
  bool accumulate;
  void* scratch;  ///< gradient_scratch_bytes for each image, on a cache line
};

/// What comes back through the norm behind a convolution: factor (dy - shift - (y - center) slope),
/// each but dy and y a number for each filter.
struct NormBehind {
  Lying y;  ///< the convolution's results
  const float* center;
  const float* factor;
  const float* shift;
  const float* slope;
};
/// What goes on through relu in front of a convolution: the gradient of x and what is added to it
/// where x is above 0, and in the sums over an image of it and of it times (norm - center).
struct ReluInFront {
  Lying more;  ///< or null
  Lying norm;  ///< what the norm in front of relu is of
  const float* center;
  double* sums;  ///< [images, 2, channels], or null: there is no relu
};

/// Both gradients of a convolution, and of what is around it, of numbers that are rounded to
/// bfloat16.
struct RoundedGradientsArgs {
  /// Of the filters: dy is what comes back to the norm, x may be what a norm in front is of.
  SplitWindowGradientArgs weight;
  SplitFrame back;  ///< windows of dy for the gradient of x
  NormBehind norm;
  WindowFront front;  ///< without a residual, and not kept
  ReluInFront relu;
  const std::uint16_t* filters;  ///< of the gradient of x
  Written dx;                    ///< may be the norm's y
  bool has_next;                 ///< whether more images lie behind these
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
  bool splits;  ///< floats in parts, or it is for rounded numbers alone
  std::int64_t (*filters_size)(std::int64_t taps, std::int64_t channels, std::int64_t n);
  /// Numbers are below kMostSplitWeight.
  void (*pack)(const SplitFilterArgs&);
  std::int64_t (*scratch_bytes)(const SplitFrame&, std::int64_t n);
  /// Whether it was done: where a number of x is not below kMostSplit, y stays as it is.
  bool (*multiply)(const SplitWindowArgs&);
  std::int64_t (*gradient_scratch_bytes)(const SplitFrame&, std::int64_t n);
  /// Whether it was done: where a number is not below kMostSplitGradient, dw stays as it is.
  bool (*add_gradient)(const SplitWindowGradientArgs&);
  std::int64_t (*rounded_gradients_scratch_bytes)(const SplitFrame&, const SplitFrame& back,
                                                  std::int64_t images);
  /// How many images were done: those in front of the first that has a number which is not below
  /// kMostSplitGradient.
  std::int64_t (*add_rounded_gradients)(const RoundedGradientsArgs&);
};

}  // namespace lathe::engine
