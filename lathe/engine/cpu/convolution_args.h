#pragma once

// The arguments of the kernels that go over images. Plain structs only: see kernel_table.h.

#include <cstdint>

namespace lathe::engine {

/// y[rows, pixels, n] = activation(the window of each pixel . B[k, n] + bias[n] + residual).
///
/// Channels lie side by side, so that a window is `lines` lines of `pieces` pieces, each of
/// `length` floats in a row, and k counts them in that order. An element is summed over k in
/// ascending order by one accumulator: it has the same bits whatever it is computed with.
struct ConvolveArgs {
  std::int64_t rows, pixels, n;
  const float* const* x;  ///< for each row, where the window of its first pixel begins
  std::int64_t x_step;    ///< from the window of a pixel to the next one's
  std::int64_t lines, line_step;
  std::int64_t pieces, piece_step;
  std::int64_t length;
  const float* packed;    ///< B as pack_b wrote it
  const float* bias;      ///< or null
  const float* residual;  ///< or null; lies as y does
  float* y;
  const std::int64_t* y_rows;  ///< for each row, where its first pixel lies in y
  std::int64_t y_step;         ///< from a pixel to the next
  int activation;              ///< a Unary, one of the epilogues
  /// Calls for panels that lie one behind another: an earlier one has fetched the first panel of
  /// this one ahead, and a later one wants the panel behind the last.
  bool is_near = false, goes_on = false;
};

/// dw[n, k] = the sum over lines and pixels of dy[line, pixel, n] times x[line, pixel, k], where
/// the k floats of a pixel are a line of the window under it. Summed in the order of lines and
/// pixels by one accumulator, so that images given one after another with `accumulate` have one
/// order.
struct ConvolveGradientArgs {
  std::int64_t lines, pixels, n, k;
  const float* dy;
  std::int64_t dy_line, dy_step;  ///< from a line and from a pixel to the next
  const float* x;
  std::int64_t x_line, x_step;
  float* dw;
  std::int64_t dw_stride;
  bool accumulate;  ///< start the sums from dw instead of 0
};

/// y[channels] from a window of x, whose channels lie side by side: the largest of each channel,
/// NaN where there is one, or the sum in the order of the window, divided.
struct PoolArgs {
  std::int64_t lines, line_step;    ///< of the window, and from one to the next
  std::int64_t pixels, pixel_step;  ///< of a line
  std::int64_t channels;
  const float* x;  ///< the first pixel of the window
  float* y;
  float divisor;  ///< of the sum
  bool is_largest;
};

/// y[columns, rows] = x[rows, columns]; strides are distances between rows, in floats.
struct TransposeArgs {
  std::int64_t rows, columns;
  const float* x;
  std::int64_t x_stride;
  float* y;
  std::int64_t y_stride;
};

}  // namespace lathe::engine
