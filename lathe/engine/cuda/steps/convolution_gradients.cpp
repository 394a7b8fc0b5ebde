#include <algorithm>

#include "lathe/engine/cuda/cuda_convolution.h"

namespace lathe::engine {
namespace {

// The gradients of conv2d, and of images whose channels lie side by side.

bool has_flag(const Graph& graph, NodeId id, const char* flag) {
  return graph.op(id).name.starts_with("image_") && graph.attribute(id).flag(flag);
}

// dx: windows of dy, against the taps, times the filters turned around.
class InputGradientOfImages final : public CudaStep {
 public:
  InputGradientOfImages(const Graph& graph, NodeId id, CudaConvolution convolution)
      : convolution_(convolution),
        dy_is_last_(has_flag(graph, id, "dy_last")),
        dx_is_last_(has_flag(graph, id, "dx_last")) {}
  std::vector<std::size_t> half_operands() const override {
    if (!dy_is_last_) return {};
    return {0};
  }
  std::vector<std::size_t> rounded_operands() const override { return {0}; }
  std::vector<std::size_t> half_results() const override { return {0}; }
  bool can_write_half(std::size_t) const override { return true; }
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const CudaImages dy =
        cuda_images(graph.type(graph.input(id, 0)).dims(sizes.bucket), dy_is_last_);
    const std::int64_t channels = pixel_channels(sizes.precision);
    if (dy_is_last_ && channels == dy.channels) return filters_bytes(sizes.precision);
    return filters_bytes(sizes.precision) + pixels_bytes(dy, channels, is_half(sizes.precision));
  }

  void launch(const CudaCall& call) const override {
    const CudaImages dy = cuda_images(call.dims(call.input_type(0)), dy_is_last_);
    const CudaImages dx = cuda_images(call.dims(call.type(0)), dx_is_last_);
    std::byte* room = call.scratch + filters_bytes(call.precision);
    const CudaPixels pixels = to_pixels(call, call.operand(0), dy, pixel_channels(call.precision),
                                        is_half(call.precision), room);
    // Groups share their taps, so each of them has filters of its own inputs.
    for (std::int64_t group = 0; group < convolution_.groups; ++group) {
      cuda::FiltersArgs filters;
      filters.weight = call.input(1) + group * group_weights();
      filters.outputs = group_filters();
      filters.inputs = convolution_.inputs;
      filters.rows_of_taps = convolution_.window.kernel[0];
      filters.taps_of_row = convolution_.window.kernel[1];
      filters.is_turned = true;
      filters.precision = is_grouped() ? cuda::Precision::Float32 : call.precision;
      filters.channels = is_grouped() ? group_filters() : pixels.channels;
      filters.depth = filters.pitch = depth(call.precision);
      filters.filters = call.scratch + group * convolution_.inputs * depth(call.precision) *
                                           element(call.precision);
      call.kernels.filters(filters, call.stream);
    }
    cuda::ConvolutionArgs args;
    args.precision = call.precision;
    args.first.x = pixels.data;
    args.filters = call.scratch;
    args.y = call.output(0);
    args.y_half = call.output_half(0);
    args.are_planes = !dx_is_last_;
    args.count = dy.count;
    args.first.height = dy.height;
    args.first.width = dy.width;
    args.first.channels = static_cast<std::int32_t>(pixels.channels);
    args.y_height = dx.height;
    args.y_width = dx.width;
    args.columns = dx.channels;
    args.first.depth = static_cast<std::int32_t>(depth(call.precision));
    for (int axis = 0; axis < 2; ++axis)
      args.first.axes[axis] = gradient_axis(convolution_.window, axis);
    if (is_grouped())
      call.kernels.grouped_convolution(
          {args, pixels.as, static_cast<std::int32_t>(convolution_.groups)}, call.stream);
    else
      call.kernels.convolution(args, call.stream);
  }

 private:
  bool is_grouped() const { return convolution_.groups > 1; }
  static bool is_half(cuda::Precision precision) { return precision == cuda::Precision::Bf16; }
  std::int64_t group_filters() const { return convolution_.filters / convolution_.groups; }
  std::int64_t group_weights() const { return convolution_.num_weights() / convolution_.groups; }
  std::int64_t element(cuda::Precision precision) const {
    return is_grouped() ? 4 : cuda::element_bytes(precision);
  }
  std::int64_t pixel_channels(cuda::Precision precision) const {
    return is_grouped() ? convolution_.filters
                        : cuda::padded_channels(convolution_.filters, precision);
  }
  std::int64_t depth(cuda::Precision precision) const {
    if (is_grouped()) return convolution_.taps() * group_filters();
    return cuda::padded_depth(convolution_.taps() * pixel_channels(precision), precision);
  }
  std::int64_t filters_bytes(cuda::Precision precision) const {
    return cuda::round_up(convolution_.channels() * depth(precision) * element(precision), 256);
  }

  CudaConvolution convolution_;
  bool dy_is_last_, dx_is_last_;
};

std::unique_ptr<CudaStep> make_gradient_of_input(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!is_float(graph, value)) return nullptr;
  const std::optional<CudaConvolution> convolution =
      cuda_convolution(graph, id, graph.type(graph.input(id, 1)));
  if (!convolution) return nullptr;
  return std::make_unique<InputGradientOfImages>(graph, id, *convolution);
}

// Parts that the pixels of dy are summed in: enough for all multiprocessors. Follows from the sizes
// alone, and is never less for more pixels.
std::int64_t gradient_parts(const CudaConvolution& convolution, std::int64_t pixels) {
  constexpr std::int64_t kTile = 64, kBlocks = 264, kLeastPixels = 512;
  const std::int64_t filters = convolution.filters / convolution.groups;
  const std::int64_t tiles = (convolution.inputs + kTile - 1) / kTile *
                             ((filters + kTile - 1) / kTile) * convolution.taps() *
                             convolution.groups;
  const std::int64_t most = std::max<std::int64_t>(1, (2 * kBlocks + tiles - 1) / tiles);
  return std::clamp<std::int64_t>(pixels / kLeastPixels, 1, most);
}

class FilterGradientStep final : public CudaStep {
 public:
  FilterGradientStep(const Graph& graph, NodeId id, CudaConvolution convolution)
      : convolution_(convolution),
        dy_is_last_(has_flag(graph, id, "dy_last")),
        x_is_last_(has_flag(graph, id, "x_last")) {}
  std::vector<std::size_t> half_operands() const override {
    std::vector<std::size_t> operands;
    if (dy_is_last_) operands.push_back(0);
    if (x_is_last_) operands.push_back(1);
    return operands;
  }
  std::vector<std::size_t> rounded_operands() const override { return {0, 1}; }
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const CudaImages dy =
        cuda_images(graph.type(graph.input(id, 0)).dims(sizes.bucket), dy_is_last_);
    const CudaImages x = cuda_images(graph.type(graph.input(id, 1)).dims(sizes.bucket), x_is_last_);
    const bool is_half = sizes.precision == cuda::Precision::Bf16;
    return sums_bytes(dy) + (dy_is_last_ ? 0 : pixels_bytes(dy, dy.channels, is_half)) +
           (x_is_last_ ? 0 : pixels_bytes(x, x.channels, is_half));
  }
  void launch(const CudaCall& call) const override {
    const CudaImages dy = cuda_images(call.dims(call.input_type(0)), dy_is_last_);
    const CudaImages x = cuda_images(call.dims(call.input_type(1)), x_is_last_);
    const bool is_half = call.precision == cuda::Precision::Bf16;
    std::byte* room = call.scratch + sums_bytes(dy);
    const CudaPixels left = to_pixels(call, call.operand(0), dy, dy.channels, is_half, room);
    const CudaPixels right = to_pixels(call, call.operand(1), x, x.channels, is_half, room);
    cuda::FilterGradientArgs args;
    args.precision = call.precision;
    args.dy = left.data;
    args.dy_as = left.as;
    args.x = right.data;
    args.x_as = right.as;
    args.count = x.count;
    args.height = x.height;
    args.width = x.width;
    args.inputs = x.channels;
    args.outputs = dy.channels;
    args.groups = static_cast<std::int32_t>(convolution_.groups);
    args.y_height = dy.height;
    args.y_width = dy.width;
    for (int axis = 0; axis < 2; ++axis) args.axes[axis] = window_axis(convolution_.window, axis);
    args.parts = static_cast<std::int32_t>(gradient_parts(convolution_, dy.count * dy.pixels()));
    args.sums = reinterpret_cast<float*>(call.scratch);
    args.dw = call.output(0);
    call.kernels.filter_gradient(args, call.stream);
  }

 private:
  std::int64_t sums_bytes(const CudaImages& dy) const {
    return cuda::round_up(
        gradient_parts(convolution_, dy.count * dy.pixels()) * convolution_.num_weights() * 4, 256);
  }
  CudaConvolution convolution_;
  bool dy_is_last_, x_is_last_;
};

std::unique_ptr<CudaStep> make_gradient_of_filters(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!is_float(graph, value)) return nullptr;
  const std::optional<CudaConvolution> convolution =
      cuda_convolution(graph, id, graph.types(id)[0]);
  if (!convolution) return nullptr;
  return std::make_unique<FilterGradientStep>(graph, id, *convolution);
}

const Register input_gradient{CudaKernel{"conv2d_input_gradient", make_gradient_of_input}};
const Register weight_gradient{CudaKernel{"conv2d_weight_gradient", make_gradient_of_filters}};
const Register image_input_gradient{
    CudaKernel{"image_conv2d_input_gradient", make_gradient_of_input}};
const Register image_weight_gradient{
    CudaKernel{"image_conv2d_weight_gradient", make_gradient_of_filters}};

}  // namespace
}  // namespace lathe::engine
