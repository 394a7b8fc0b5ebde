#pragma once

#include "lathe/engine/cuda/arguments/pooling.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/window.h"

namespace lathe::engine {

/// Images of one execution, in either layout.
struct CudaImages {
  std::int32_t count = 0, channels = 0, height = 0, width = 0;
  bool is_last = false;
  std::int64_t pixels() const { return std::int64_t{height} * width; }
};
CudaImages cuda_images(const std::vector<std::int64_t>& dims, bool is_last);

/// What convolutions of a node and its gradients have in common.
struct CudaConvolution {
  std::int64_t filters = 0, inputs = 0;  ///< of the weight: inputs of a group
  std::int64_t groups = 1;
  ops::Window window{};
  std::int64_t channels() const { return inputs * groups; }
  std::int64_t taps() const { return window.kernel[0] * window.kernel[1]; }
  std::int64_t num_weights() const { return filters * inputs * taps(); }
};
/// Of a node with conv2d's attributes; nothing where the weight's sizes are no constants.
std::optional<CudaConvolution> cuda_convolution(const Graph& graph, NodeId id, const Type& weight);

/// Along an axis of the window: forward, and for the gradient of the input.
cuda::WindowAxis window_axis(const ops::Window& window, int axis);
cuda::WindowAxis gradient_axis(const ops::Window& window, int axis);

/// The largest numbers of windows of x; the caller says where they lie.
cuda::PoolArgs pool_args(const CudaImages& x, const CudaImages& y, const ops::Window& window);

/// Floats with their channels last, as products of a precision read them: x itself where it lies
/// so, else a copy in the room, which is behind it then.
struct CudaPixels {
  const void* data = nullptr;
  cuda::Number as = cuda::Number::F32;
  std::int64_t channels = 0;
};
CudaPixels to_pixels(const CudaCall& call, CudaOperand x, const CudaImages& images,
                     std::int64_t channels, bool is_half, std::byte*& room);
/// Bytes of such a copy.
std::int64_t pixels_bytes(const CudaImages& images, std::int64_t channels, bool is_half);

}  // namespace lathe::engine
