#pragma once

#include <cstdint>
#include <span>

#include "lathe/engine/cpu/kernels.h"

namespace lathe::engine {

/// Adds the sums over some pixels of g and of g (x - center) to total[2, n], in double: as many as
/// `rows` says, kChannelRows of which are summed in floats. `sums` is not read.
void add_channel_products(const Kernels& kernels, const ChannelProductsArgs& pixels, double* total);

/// What the gradients of a batch norm are made of.
struct ChannelSums {
  std::span<const double> parts;  ///< [parts, 2, n], added in their order
  std::int64_t n;
  double count;  ///< of pixels
  double eps;
  const float* weight;
  const float* variance;  ///< over count - 1
};
/// Where the results of channel_gradients go.
struct ChannelGradients {
  float* weight;
  float* bias;
  float* factor;
  float* shift;
  float* slope;
};
void put_channel_gradients(const ChannelSums& sums, const ChannelGradients& results);

}  // namespace lathe::engine
