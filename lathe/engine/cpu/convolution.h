#pragma once

#include <cstdint>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/engine/cpu/image_product.h"
#include "lathe/ops/window.h"

namespace lathe::engine {

/// The sizes of one execution of conv2d or of a gradient of it, and how its images lie.
struct Convolution {
  Images x, y;
  std::int64_t groups;
  ops::Window window;

  std::int64_t group_channels() const { return x.channels / groups; }
  std::int64_t group_filters() const { return y.channels / groups; }
  std::int64_t taps() const { return window.kernel[0] * window.kernel[1]; }
  std::int64_t num_weights() const { return y.channels * group_channels() * taps(); }
};

Images images_of(const std::vector<std::int64_t>& dims, bool is_last);
Convolution convolution_of(const AttributeReader& attributes, const Images& x, const Images& y,
                           const std::vector<std::int64_t>& weight);

/// conv2d as a product of windows, and where conv2d's weight [O,C/groups,kh,kw] has its filters.
ImageProduct forward_product(const Convolution& convolution);
FilterPlaces forward_places(const Convolution& convolution);

/// The gradient of x in parts, one for each remainder of rows and columns by the strides: the
/// results of a part are every stride-th row and column, and see the same taps.
struct GradientPart {
  ImageProduct product;
  FilterPlaces places;
};
std::vector<GradientPart> gradient_parts(const Convolution& convolution);

}  // namespace lathe::engine
