#pragma once

// The arguments of the kernels of Winograd's convolutions. Plain structs only: see kernel_table.h.
//
// A tile of T x T results comes from (T + 2)^2 numbers of each channel under it. Both they and the
// filters' 3 x 3 are transformed into as many points; there a convolution is a product at each
// point, whose results are transformed back (Lavin and Gray 2015). T is 2 or 4.

#include <cstdint>

namespace lathe::engine {

/// Points of a tile.
constexpr int winograd_points(int tile) {
  return (tile + 2) * (tile + 2);
}

/// A norm and relu that pixels go through when they are read: max(0, (x - center) slope + bias), a
/// number of each for a channel. Without a center there is none.
struct WinogradFront {
  const float* center = nullptr;
  const float* slope = nullptr;
  const float* bias = nullptr;
};

/// points[t * tile_step + p * step + c] of the pixels under the tiles t of a row of an image;
/// pixels outside of the image are 0.
struct WinogradInputArgs {
  int tile;
  std::int64_t tiles, channels;
  const float* x;  ///< where the first pixel is, or would be
  WinogradFront front;
  std::int64_t line, pixel;  ///< from one to the next
  std::int64_t top, bottom;  ///< lines of a tile that are inside
  std::int64_t left, right;  ///< pixels that are, counted from the first tile's on
  float* points;
  std::int64_t tile_step, step;
};

/// points[p * step + f] of the filters, a row of n numbers for each of the 9 taps.
struct WinogradFilterArgs {
  int tile;
  std::int64_t n;
  const float* taps;
  std::int64_t tap_step;
  float* points;
  std::int64_t step;
};

/// The results of the tiles of a row from points[t * tile_step + p * step + f]:
/// y = activation(result + bias + residual).
struct WinogradOutputArgs {
  int tile;
  std::int64_t tiles, n;
  const float* points;
  std::int64_t tile_step, step;
  const float* bias;      ///< or null
  const float* residual;  ///< or null; lies as y does
  float* y;
  std::int64_t line, pixel;  ///< from one to the next
  std::int64_t lines;        ///< of a tile that are inside the image
  std::int64_t pixels;       ///< that are, from the first tile's on
  int activation;            ///< a Unary, one of the epilogues
};

/// points[t * tile_step + p * step + f] of the gradients of the tiles of 4 x 4 results of a row, of
/// which some are inside the image and the others 0: times the points under a tile, summed over
/// tiles, they are those of the filters' gradient.
struct WinogradGradientArgs {
  std::int64_t tiles, n;
  const float* dy;
  std::int64_t line, pixel;    ///< from one to the next
  std::int64_t lines, pixels;  ///< as in WinogradOutputArgs
  float* points;
  std::int64_t tile_step, step;
};

/// The gradients dw[tap * tap_step + c] of a filter's 9 taps from points[p * step + c].
struct WinogradTapsArgs {
  std::int64_t channels;
  const float* points;
  std::int64_t step;
  float* dw;
  std::int64_t tap_step;
};

}  // namespace lathe::engine
