#include "lathe/engine/cuda/cuda_convolution.h"

#include <limits>

#include "lathe/core/error.h"

namespace lathe::engine {

CudaImages cuda_images(const std::vector<std::int64_t>& dims, bool is_last) {
  std::int64_t all = 1;
  for (const std::int64_t size : dims) {
    // Kernels count pixels and numbers of an image by 32 bits.
    if (size > std::numeric_limits<std::int32_t>::max() / std::max<std::int64_t>(1, all))
      fail("images [{}]: device cuda counts to {} numbers at most", fmt::join(dims, ","),
           std::numeric_limits<std::int32_t>::max());
    all *= std::max<std::int64_t>(1, size);
  }
  const auto at = [&](std::size_t axis) { return static_cast<std::int32_t>(dims[axis]); };
  if (is_last) return {at(0), at(3), at(1), at(2), true};
  return {at(0), at(1), at(2), at(3), false};
}

std::optional<CudaConvolution> cuda_convolution(const Graph& graph, NodeId id, const Type& weight) {
  for (const Size& size : weight.shape)
    if (!size.is_constant()) return std::nullopt;
  const AttributeReader attributes = graph.attribute(id);
  CudaConvolution result;
  result.filters = weight.axis(0).constant();
  result.inputs = weight.axis(1).constant();
  result.groups = attributes.integer("groups");
  result.window = ops::read_window("conv2d", weight.axis(2).constant(), weight.axis(3).constant(),
                                   attributes, true);
  if (result.num_weights() == 0) return std::nullopt;
  return result;
}

cuda::WindowAxis window_axis(const ops::Window& window, int axis) {
  return {.taps = static_cast<std::int32_t>(window.kernel[axis]),
          .step = static_cast<std::int32_t>(window.strides[axis]),
          .offset = static_cast<std::int32_t>(-window.pads[axis]),
          .spread = static_cast<std::int32_t>(window.dilations[axis])};
}

cuda::WindowAxis gradient_axis(const ops::Window& window, int axis) {
  return {.taps = static_cast<std::int32_t>(window.kernel[axis]),
          .step = 1,
          .offset = static_cast<std::int32_t>(window.pads[axis]),
          .spread = static_cast<std::int32_t>(-window.dilations[axis]),
          .divisor = static_cast<std::int32_t>(window.strides[axis])};
}

namespace {

cuda::PooledImages places_of(const CudaImages& images) {
  const std::int64_t plane = images.pixels(), channels = images.channels;
  if (images.is_last) return {plane * channels, images.width * channels, channels, 1};
  return {plane * channels, images.width, 1, plane};
}

}  // namespace

cuda::PoolArgs pool_args(const CudaImages& x, const CudaImages& y, const ops::Window& window) {
  cuda::PoolArgs args;
  args.count = x.count;
  args.channels = x.channels;
  args.height = x.height;
  args.width = x.width;
  args.y_height = y.height;
  args.y_width = y.width;
  for (int axis = 0; axis < 2; ++axis) args.axes[axis] = window_axis(window, axis);
  args.x_places = places_of(x);
  args.y_places = places_of(y);
  return args;
}

std::int64_t pixels_bytes(const CudaImages& images, std::int64_t channels, bool is_half) {
  return cuda::round_up(images.count * images.pixels() * channels * (is_half ? 2 : 4), 256);
}

CudaPixels to_pixels(const CudaCall& call, CudaOperand x, const CudaImages& images,
                     std::int64_t channels, bool is_half, std::byte*& room) {
  const cuda::Number wanted = is_half ? cuda::Number::BF16 : cuda::Number::F32;
  if (images.is_last && images.channels == channels && x.as == wanted)
    return {x.data, wanted, channels};
  call.kernels.images({.x = x.data,
                       .x_as = x.as,
                       .are_planes = !images.is_last,
                       .y = room,
                       .is_half = is_half,
                       .count = images.count,
                       .pixels = images.pixels(),
                       .channels = images.channels,
                       .to_channels = channels},
                      call.stream);
  const CudaPixels result{room, wanted, channels};
  room += pixels_bytes(images, channels, is_half);
  return result;
}

}  // namespace lathe::engine
