#pragma once

// The arguments of the kernels of batch norms whose channels lie side by side. Plain structs only:
// see kernel_table.h.

#include <cstdint>

namespace lathe::engine {

/// Rows that are summed in floats; whoever has more adds up such parts in double.
inline constexpr std::int64_t kChannelRows = 32;

/// The mean of each column of x[rows, n], of at most kChannelRows rows, and the sum of the squares
/// of its distances from it.
struct ChannelMomentsArgs {
  std::int64_t rows, n;
  const float* x;
  float* means;
  float* squares;
};

/// For each column and each kChannelRows rows, the sums of g and of g (x - center), where g is dy,
/// or what comes back through relu of dy and of what is added to it.
struct ChannelProductsArgs {
  std::int64_t rows, n;
  const float* dy;
  const float* more;   ///< added to dy, or null
  const float* relu;   ///< what relu made, or null
  const float* slope;  ///< where relu is of (x - center) slope + bias, or null
  const float* bias;
  float* g;  ///< where it is kept, or null without relu; may be dy or more
  const float* x;
  const float* center;
  float* sums;  ///< [blocks of rows, 2, n]
};

/// y = (x - center) slope + bias, each of the three a number for a column, then with a residual and
/// through relu, where there are; y may be x or the residual.
struct ScaleChannelsArgs {
  std::int64_t rows, n;
  const float* x;
  const float* center;
  const float* slope;
  const float* bias;
  const float* residual;  ///< or null
  bool has_relu;
  float* y;
};

/// dx = factor (dy - shift - (x - center) slope); dx may be dy or x.
struct ScaleChannelsBackwardArgs {
  std::int64_t rows, n;
  const float* dy;
  const float* x;
  const float* center;
  const float* factor;
  const float* shift;
  const float* slope;
  float* dx;
};

}  // namespace lathe::engine
