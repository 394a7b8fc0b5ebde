#pragma once

#include "lathe/engine/cuda/arguments/convolution.h"

// Pooling and its gradients, of images in either layout.
namespace lathe::engine::cuda {

/// The largest number or the mean of each window. A number of the result is number
/// image * of_image + line * of_line + column * of_column + channel * of_channel.
struct PooledImages {
  std::int64_t of_image = 0, of_line = 0, of_column = 0, of_channel = 0;
};
struct PoolArgs {
  bool is_largest = true;
  bool counts_padding = true;  ///< a mean divides by all numbers of a window
  std::int32_t count = 0, channels = 0, height = 0, width = 0, y_height = 0, y_width = 0;
  WindowAxis axes[2];  ///< with divisors of 1
  PooledImages x_places, y_places;
  const void* x = nullptr;
  Number x_as = Number::F32;  ///< or BF16
  float* y = nullptr;         ///< null: nobody asks
  std::uint16_t* y_half = nullptr;
};

/// dx from dy and, for the largest, x: each number of dx adds up its windows' shares in order.
struct PoolGradientArgs {
  PoolArgs pool;  ///< y is unused
  const float* dy = nullptr;
  float* dx = nullptr;
};

/// The largest numbers under windows of a convolution's result, which is never written: filters of
/// bfloat16 over images of up to four planes of floats, two of whose neighbours are one pixel of
/// eight channels.
struct PooledConvolutionArgs {
  const float* x = nullptr;  ///< [count, channels, height, width]
  const void* filters = nullptr;
  const float* bias = nullptr;
  Map map = Map::Identity;
  std::int32_t count = 0, channels = 0, height = 0, width = 0;
  std::int32_t rows_of_taps = 0;
  std::int32_t top = 0, left = 0;                    ///< where the first window begins, in pixels
  std::int32_t middle_height = 0, middle_width = 0;  ///< of the convolution
  std::int32_t pool_top = 0, pool_left = 0;          ///< where the first window of those begins
  std::int32_t y_height = 0, y_width = 0;
  float* y = nullptr;  ///< [count, y_height, y_width, 64]; null: nobody asks
  std::uint16_t* y_half = nullptr;
  bool may_begin_early = false;
};
/// What the kernel is made for: as many filters, rows of so many pairs of pixels and at most so
/// many of them, strides of two, and windows of three by three behind.
inline constexpr int kPooledColumns = 64, kPooledPairs = 4, kMostPooledRows = 7;

}  // namespace lathe::engine::cuda
