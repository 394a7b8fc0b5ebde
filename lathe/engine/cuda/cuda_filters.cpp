#include "lathe/engine/cuda/cuda_filters.h"

namespace lathe::engine {

bool is_settled(const Graph& graph, Value value) {
  return graph.is(value.node, "state") && !graph.state_updates().contains(value.node);
}

bool has_operand(const Graph& graph, NodeId id, std::size_t operand) {
  return operand < graph.inputs(id).size() && !graph.input(id, operand).is_none();
}

CudaFilters::CudaFilters(const Graph& graph, NodeId id, CudaConvolution convolution,
                         Operands operands, double eps, bool x_is_last)
    : convolution_(convolution),
      operands_(operands),
      eps_(eps),
      width_(graph.type(graph.input(id, operands.x)).axis(x_is_last ? 2 : 3)),
      has_bias_(has_operand(graph, id, operands.bias)),
      has_norm_(has_operand(graph, id, operands.norm)) {
  const auto is_one = [&](std::size_t operand) {
    return engine::is_settled(graph, graph.input(id, operand));
  };
  is_settled_ = is_one(operands.weight) && (!has_bias_ || is_one(operands.bias));
  for (std::size_t i = 0; has_norm_ && i < 4; ++i)
    is_settled_ = is_settled_ && is_one(operands.norm + i);
}

bool CudaFilters::has_pairs(cuda::Precision precision) const {
  const ops::Window& window = convolution_.window;
  return precision == cuda::Precision::Bf16 && !is_grouped() && convolution_.inputs <= 4 &&
         window.strides[1] == 2 && window.dilations[1] == 1 && window.kernel[1] > 1 &&
         width_.is_constant() && width_.constant() % 2 == 0;
}

std::int32_t CudaFilters::pairs_before() const {
  return static_cast<std::int32_t>((convolution_.window.pads[1] + 1) / 2);
}

// Pixels of the first pair that are not under the window.
std::int32_t CudaFilters::shift() const {
  return 2 * pairs_before() - static_cast<std::int32_t>(convolution_.window.pads[1]);
}

std::int32_t CudaFilters::num_pairs() const {
  return (static_cast<std::int32_t>(convolution_.window.kernel[1]) + shift() + 1) / 2;
}

std::int64_t CudaFilters::pixel_channels(cuda::Precision precision) const {
  if (is_grouped()) return convolution_.channels();
  return has_pairs(precision) ? 4 : cuda::padded_channels(convolution_.inputs, precision);
}

std::int64_t CudaFilters::filter_channels(cuda::Precision precision) const {
  if (is_grouped()) return convolution_.inputs;
  return has_pairs(precision) ? 8 : pixel_channels(precision);
}

std::int64_t CudaFilters::depth(cuda::Precision precision) const {
  if (is_grouped()) return convolution_.taps() * convolution_.inputs;
  const std::int64_t taps =
      has_pairs(precision) ? convolution_.window.kernel[0] * num_pairs() : convolution_.taps();
  return cuda::padded_depth(taps * filter_channels(precision), precision);
}

// Groups have few products each, in float.
std::int64_t CudaFilters::element_bytes(cuda::Precision precision) const {
  return is_grouped() ? 4 : cuda::element_bytes(precision);
}

void CudaFilters::make(const CudaCall& call, std::byte* to, std::int64_t pitch, float* bias,
                       bool adds) const {
  cuda::FiltersArgs args;
  args.weight = call.input(operands_.weight);
  args.outputs = convolution_.filters;
  args.inputs = convolution_.inputs;
  args.rows_of_taps = convolution_.window.kernel[0];
  args.taps_of_row = convolution_.window.kernel[1];
  args.shift = has_pairs(call.precision) ? shift() : -1;
  args.precision = is_grouped() ? cuda::Precision::Float32 : call.precision;
  args.channels = filter_channels(call.precision);
  args.depth = depth(call.precision);
  args.pitch = pitch;
  args.filters = to;
  if (has_bias_) args.bias = call.input(operands_.bias);
  if (has_norm_) {
    args.norm_weight = call.input(operands_.norm);
    args.norm_bias = call.input(operands_.norm + 1);
    args.norm_mean = call.input(operands_.norm + 2);
    args.norm_variance = call.input(operands_.norm + 3);
    args.eps = eps_;
  }
  args.new_bias = bias;
  args.adds_bias = adds;
  call.kernels.filters(args, call.stream);
}

cuda::ConvolutionSource CudaFilters::source(const CudaCall& call, const CudaImages& x,
                                            const CudaPixels& pixels) const {
  cuda::ConvolutionSource result;
  result.x = pixels.data;
  result.height = x.height;
  result.width = x.width;
  result.channels = static_cast<std::int32_t>(pixels.channels);
  result.depth = static_cast<std::int32_t>(depth(call.precision));
  for (int axis = 0; axis < 2; ++axis) result.axes[axis] = window_axis(convolution_.window, axis);
  if (has_pairs(call.precision)) {
    result.width /= 2;
    result.channels *= 2;
    result.axes[1] = {.taps = num_pairs(), .step = 1, .offset = -pairs_before()};
  }
  return result;
}

}  // namespace lathe::engine
