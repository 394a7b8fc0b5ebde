#include "lathe/engine/cpu/convolution.h"

#include <numeric>

namespace lathe::engine {
namespace {

// One axis of a part of the gradient: x at `remainder` + m * stride has a product with tap p of the
// result i where i * stride = remainder + m * stride + pad - p * dilation. Such p are `step` apart,
// and i falls by `dilation` from one to the next, so they are taken backwards.
struct GradientAxis {
  ImageProduct::Axis axis;
  std::vector<std::int64_t> taps;
};

GradientAxis gradient_axis(const ops::Window& window, int index, std::int64_t size,
                           std::int64_t remainder) {
  const std::int64_t stride = window.strides[index], dilation = window.dilations[index];
  const std::int64_t shift = remainder + window.pads[index];
  GradientAxis result;
  std::int64_t first = 0;
  for (std::int64_t tap = window.kernel[index] - 1; tap >= 0; --tap) {
    const std::int64_t distance = shift - tap * dilation;
    if (distance % stride != 0) continue;
    if (result.taps.empty()) first = distance / stride;
    result.taps.push_back(tap);
  }
  result.axis = {.places = (size - remainder + stride - 1) / stride,
                 .taps = std::ssize(result.taps),
                 .stride = 1,
                 .first = first,
                 .dilation = dilation / std::gcd(dilation, stride),
                 .out_first = remainder,
                 .out_step = stride};
  return result;
}

}  // namespace

Images images_of(const std::vector<std::int64_t>& dims, bool is_last) {
  if (is_last) return {dims[0], dims[3], dims[1], dims[2], true};
  return {dims[0], dims[1], dims[2], dims[3], false};
}

Convolution convolution_of(const AttributeReader& attributes, const Images& x, const Images& y,
                           const std::vector<std::int64_t>& weight) {
  return {x, y, attributes.integer("groups"),
          ops::read_window("conv2d", weight[2], weight[3], attributes, true)};
}

ImageProduct forward_product(const Convolution& convolution) {
  const ops::Window& window = convolution.window;
  const auto axis = [&](int index, std::int64_t places) {
    return ImageProduct::Axis{.places = places,
                              .taps = window.kernel[index],
                              .stride = window.strides[index],
                              .first = -window.pads[index],
                              .dilation = window.dilations[index]};
  };
  return {.x = convolution.x,
          .y = convolution.y,
          .groups = convolution.groups,
          .axes = {axis(0, convolution.y.height), axis(1, convolution.y.width)}};
}

FilterPlaces forward_places(const Convolution& convolution) {
  const std::int64_t depth = convolution.group_channels() * convolution.taps();
  FilterPlaces places{convolution.group_filters() * depth, depth, convolution.taps(), {}, {}};
  for (std::int64_t p = 0; p < convolution.window.kernel[0]; ++p)
    places.rows.push_back(p * convolution.window.kernel[1]);
  for (std::int64_t q = 0; q < convolution.window.kernel[1]; ++q) places.columns.push_back(q);
  return places;
}

std::vector<GradientPart> gradient_parts(const Convolution& convolution) {
  const std::int64_t depth = convolution.group_channels() * convolution.taps();
  std::vector<GradientPart> parts;
  for (std::int64_t r = 0; r < convolution.window.strides[0]; ++r)
    for (std::int64_t c = 0; c < convolution.window.strides[1]; ++c) {
      const GradientAxis rows = gradient_axis(convolution.window, 0, convolution.x.height, r);
      const GradientAxis columns = gradient_axis(convolution.window, 1, convolution.x.width, c);
      GradientPart part{{.x = convolution.y,
                         .y = convolution.x,
                         .groups = convolution.groups,
                         .axes = {rows.axis, columns.axis}},
                        {convolution.group_filters() * depth, convolution.taps(), depth, {}, {}}};
      for (const std::int64_t tap : rows.taps)
        part.places.rows.push_back(tap * convolution.window.kernel[1]);
      part.places.columns = columns.taps;
      if (rows.axis.places > 0 && columns.axis.places > 0) parts.push_back(std::move(part));
    }
  return parts;
}

}  // namespace lathe::engine
