#pragma once

#include <cstdint>
#include <string_view>

#include "lathe/core/op.h"

namespace lathe::ops {

/// A window that slides over the last two axes of [N,C,H,W], as convolution and pooling do.
struct Window {
  std::int64_t kernel[2];
  std::int64_t strides[2];
  std::int64_t pads[4];  ///< top, left, bottom, right
  std::int64_t dilations[2] = {1, 1};

  /// How many places the window has along H (0) or W (1) of the given size.
  std::int64_t num_places(int axis, std::int64_t size) const;
  /// Where element `tap` of the window at `place` lies in the unpadded array; may be outside.
  std::int64_t position(int axis, std::int64_t place, std::int64_t tap) const {
    return place * strides[axis] - pads[axis] + tap * dilations[axis];
  }
};

/// Reads `strides` (empty: the kernel's size), `pads` and, where the op has it, `dilations`; fails
/// on numbers that make no window.
Window read_window(std::string_view op, std::int64_t height, std::int64_t width,
                   const AttributeReader& attributes, bool has_dilations);
/// [N,channels,H',W'] for x [N,C,H,W]; fails when H or W is symbolic or smaller than the window.
Type slide_window(std::string_view op, const Type& x, const Size& channels, const Window& window);

}  // namespace lathe::ops
