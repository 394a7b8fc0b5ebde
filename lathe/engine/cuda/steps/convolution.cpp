#include <algorithm>

#include "lathe/engine/channels_last.h"
#include "lathe/engine/cuda/cuda_filters.h"
#include "lathe/engine/cuda/cuda_maps.h"

namespace lathe::engine {
namespace {

// conv2d and image_conv2d, alone, with the pool behind it, or with another convolution that is
// added to it. Filters are brought into the order of products once, whenever states change; where
// they are no states, in every run.

constexpr std::size_t kWeight = 1, kResidual = 3;
/// Of the convolution that is added.
constexpr CudaFilters::Operands kShortcut{.x = 8, .weight = 9, .bias = 10, .norm = 11};

bool is_half(cuda::Precision precision) {
  return precision == cuda::Precision::Bf16;
}

// What all of them have: one convolution, of whose result a kernel makes the node's.
class ConvolutionStep : public CudaStep {
 public:
  ConvolutionStep(const Graph& graph, NodeId id, CudaConvolution convolution, cuda::Map map)
      : x_is_last_(!graph.is(id, "conv2d") && graph.attribute(id).flag("x_last")),
        y_is_last_(!graph.is(id, "conv2d") && graph.attribute(id).flag("y_last")),
        has_residual_(has_operand(graph, id, kResidual)),
        map_(map),
        filters_(graph, id, convolution, {},
                 graph.is(id, "conv2d") ? 0.0 : graph.attribute(id).real("eps"), x_is_last_) {}

  std::vector<std::size_t> half_operands() const override {
    std::vector<std::size_t> operands;
    if (x_is_last_) operands.push_back(0);  // planes are rounded on their way to pixels
    if (has_residual_) operands.push_back(kResidual);
    return operands;
  }
  std::vector<std::size_t> rounded_operands() const override { return {0}; }
  std::vector<std::size_t> half_results() const override { return {0}; }
  bool can_write_half(std::size_t) const override { return true; }

  std::int64_t prepared_bytes(cuda::Precision precision) const override {
    return is_settled() ? filters_bytes(precision) + bias_bytes() : 0;
  }
  void prepare(const CudaCall& call) const override { make_filters(call, call.prepared); }

  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const CudaImages x = cuda_images(graph.type(graph.input(id, 0)).dims(sizes.bucket), x_is_last_);
    const std::int64_t filters = is_settled() ? 0 : filters_bytes(sizes.precision) + bias_bytes();
    const std::int64_t channels = filters_.pixel_channels(sizes.precision);
    if (x_is_last_ && channels == x.channels) return filters;  // read where they lie
    return filters + pixels_bytes(x, channels, is_half(sizes.precision));
  }

  void launch(const CudaCall& call) const override {
    const CudaImages y = cuda_images(call.dims(call.type(0)), y_is_last_);
    std::byte* room = call.scratch;
    multiply(call, room, y, call.output(0), call.output_half(0));
  }

 protected:
  virtual bool is_settled() const { return filters_.is_settled(); }
  virtual std::int64_t filters_bytes(cuda::Precision precision) const {
    return cuda::round_up(filters_.convolution().filters * filters_.depth(precision) *
                              filters_.element_bytes(precision),
                          256);
  }
  /// Of a bias that is not the operand.
  virtual std::int64_t bias_bytes() const {
    return filters_.has_norm() ? cuda::round_up(filters_.convolution().filters * 4, 256) : 0;
  }
  virtual void make_filters(const CudaCall& call, std::byte* to) const {
    filters_.make(call, to, filters_.depth(call.precision), bias_behind(call, to), false);
  }
  /// A second convolution, if there is one.
  virtual cuda::ConvolutionSource second_source(const CudaCall&, std::byte*&) const { return {}; }

  float* bias_behind(const CudaCall& call, std::byte* filters) const {
    return bias_bytes() == 0 ? nullptr
                             : reinterpret_cast<float*>(filters + filters_bytes(call.precision));
  }
  const float* bias_of(const CudaCall& call, std::byte* filters) const {
    const float* const made = bias_behind(call, filters);
    return made == nullptr && filters_.has_bias() ? call.input(2) : made;
  }
  // Where the filters and their bias are; made now where that is not before.
  std::byte* filters_of(const CudaCall& call, std::byte*& room) const {
    if (is_settled()) return call.prepared;
    std::byte* const filters = room;
    room += filters_bytes(call.precision) + bias_bytes();
    make_filters(call, filters);
    return filters;
  }

  void multiply(const CudaCall& call, std::byte*& room, const CudaImages& y, float* to,
                std::uint16_t* to_half) const {
    const CudaImages x = cuda_images(call.dims(call.input_type(0)), x_is_last_);
    std::byte* const filters = filters_of(call, room);
    const CudaPixels pixels =
        to_pixels(call, call.operand(0), x, filters_.pixel_channels(call.precision),
                  is_half(call.precision), room);
    cuda::ConvolutionArgs args;
    args.precision = call.precision;
    args.first = filters_.source(call, x, pixels);
    args.second = second_source(call, room);
    args.filters = filters;
    args.bias = bias_of(call, filters);
    if (has_residual_) {
      const CudaOperand residual = call.operand(kResidual);
      args.residual = residual.data;
      args.residual_as = residual.as;
    }
    args.y = to;
    args.y_half = to_half;
    args.are_planes = !y.is_last;
    args.map = map_;
    args.count = x.count;
    args.y_height = y.height;
    args.y_width = y.width;
    args.columns = y.channels;
    args.may_begin_early = is_settled();
    if (filters_.is_grouped())
      call.kernels.grouped_convolution(
          {args, pixels.as, static_cast<std::int32_t>(filters_.convolution().groups)}, call.stream);
    else
      call.kernels.convolution(args, call.stream);
  }

  bool x_is_last_, y_is_last_, has_residual_;
  cuda::Map map_;
  CudaFilters filters_;
};

// The sum of two convolutions, as the blocks of residual networks have it whose images become
// smaller: the second one is more depth of the same product.
class SummedConvolutionStep final : public ConvolutionStep {
 public:
  SummedConvolutionStep(const Graph& graph, NodeId id, CudaConvolution convolution, cuda::Map map,
                        CudaConvolution shortcut)
      : ConvolutionStep(graph, id, convolution, map),
        shortcut_(graph, id, shortcut, kShortcut, graph.attribute(id).real("short_eps"), true) {}
  std::vector<std::size_t> half_operands() const override { return {0, kShortcut.x}; }
  std::vector<std::size_t> rounded_operands() const override { return {0, kShortcut.x}; }
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const CudaImages x =
        cuda_images(graph.type(graph.input(id, kShortcut.x)).dims(sizes.bucket), true);
    const std::int64_t channels = shortcut_.pixel_channels(sizes.precision);
    return ConvolutionStep::scratch_bytes(graph, id, sizes) +
           (channels == x.channels ? 0 : pixels_bytes(x, channels, is_half(sizes.precision)));
  }

 protected:
  bool is_settled() const override { return filters_.is_settled() && shortcut_.is_settled(); }
  std::int64_t filters_bytes(cuda::Precision precision) const override {
    return cuda::round_up(
        filters_.convolution().filters * pitch(precision) * filters_.element_bytes(precision), 256);
  }
  std::int64_t bias_bytes() const override {
    return cuda::round_up(filters_.convolution().filters * 4, 256);
  }
  void make_filters(const CudaCall& call, std::byte* to) const override {
    float* const bias = bias_behind(call, to);
    filters_.make(call, to, pitch(call.precision), bias, false);
    shortcut_.make(call,
                   to + filters_.depth(call.precision) * filters_.element_bytes(call.precision),
                   pitch(call.precision), bias, true);
  }
  cuda::ConvolutionSource second_source(const CudaCall& call, std::byte*& room) const override {
    const CudaImages x = cuda_images(call.dims(call.input_type(kShortcut.x)), true);
    const CudaPixels pixels =
        to_pixels(call, call.operand(kShortcut.x), x, shortcut_.pixel_channels(call.precision),
                  is_half(call.precision), room);
    return shortcut_.source(call, x, pixels);
  }

 private:
  std::int64_t pitch(cuda::Precision precision) const {
    return filters_.depth(precision) + shortcut_.depth(precision);
  }
  CudaFilters shortcut_;
};

// A convolution with the pool behind it: one kernel for what residual networks begin with, in
// bfloat16; else two, with what lies between them in scratch.
class PooledConvolutionStep final : public ConvolutionStep {
 public:
  PooledConvolutionStep(const Graph& graph, NodeId id, CudaConvolution convolution, cuda::Map map)
      : ConvolutionStep(graph, id, convolution, map), pool_(pool_behind(graph.attribute(id))) {}
  // Planes are rounded where they are read.
  std::vector<std::size_t> rounded_operands() const override { return {}; }
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const CudaImages x = cuda_images(graph.type(graph.input(id, 0)).dims(sizes.bucket), x_is_last_);
    return ConvolutionStep::scratch_bytes(graph, id, sizes) +
           pixels_bytes(middle_of(x), filters_.convolution().filters, is_half(sizes.precision));
  }

  void launch(const CudaCall& call) const override {
    if (is_one_kernel(call.precision) && launch_one(call)) return;
    const CudaImages middle = middle_of(cuda_images(call.dims(call.input_type(0)), x_is_last_));
    const CudaImages y = cuda_images(call.dims(call.type(0)), true);
    std::byte* const between = call.scratch;
    const bool is_rounded = is_half(call.precision);
    std::byte* room = between + pixels_bytes(middle, middle.channels, is_rounded);
    multiply(call, room, middle, is_rounded ? nullptr : reinterpret_cast<float*>(between),
             is_rounded ? reinterpret_cast<std::uint16_t*>(between) : nullptr);
    cuda::PoolArgs args = pool_args(middle, y, pool_);
    args.x = between;
    args.x_as = is_rounded ? cuda::Number::BF16 : cuda::Number::F32;
    args.y = call.output(0);
    args.y_half = call.output_half(0);
    call.kernels.pool(args, call.stream);
  }

 private:
  // False: this GPU has no such kernel.
  bool launch_one(const CudaCall& call) const {
    const CudaImages x = cuda_images(call.dims(call.input_type(0)), x_is_last_);
    const CudaImages middle = middle_of(x), y = cuda_images(call.dims(call.type(0)), true);
    std::byte* room = call.scratch;
    std::byte* const filters = filters_of(call, room);
    return call.kernels.pooled_convolution(
        {.x = call.input(0),
         .filters = filters,
         .bias = bias_of(call, filters),
         .map = map_,
         .count = x.count,
         .channels = x.channels,
         .height = x.height,
         .width = x.width,
         .rows_of_taps = static_cast<std::int32_t>(filters_.convolution().window.kernel[0]),
         .top = window_axis(filters_.convolution().window, 0).offset,
         .left = -2 * filters_.pairs_before(),
         .middle_height = middle.height,
         .middle_width = middle.width,
         .pool_top = window_axis(pool_, 0).offset,
         .pool_left = window_axis(pool_, 1).offset,
         .y_height = y.height,
         .y_width = y.width,
         .y = call.output(0),
         .y_half = call.output_half(0),
         .may_begin_early = is_settled()},
        call.stream);
  }
  CudaImages middle_of(const CudaImages& x) const {
    const ops::Window& window = filters_.convolution().window;
    return {.count = x.count,
            .channels = static_cast<std::int32_t>(filters_.convolution().filters),
            .height = static_cast<std::int32_t>(window.num_places(0, x.height)),
            .width = static_cast<std::int32_t>(window.num_places(1, x.width)),
            .is_last = true};
  }
  bool is_one_kernel(cuda::Precision precision) const {
    const ops::Window& window = filters_.convolution().window;
    return filters_.has_pairs(precision) &&
           filters_.convolution().filters == cuda::kPooledColumns &&
           filters_.num_pairs() == cuda::kPooledPairs &&
           window.kernel[0] <= cuda::kMostPooledRows && window.strides[0] == 2 &&
           window.dilations[0] == 1 && pool_.kernel[0] == 3 && pool_.kernel[1] == 3 &&
           pool_.strides[0] == 2 && pool_.strides[1] == 2;
  }
  ops::Window pool_;
};

std::unique_ptr<CudaStep> make_convolution(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!value.is_none() && !is_float(graph, value)) return nullptr;
  const std::optional<CudaConvolution> convolution =
      cuda_convolution(graph, id, graph.type(graph.input(id, kWeight)));
  if (!convolution) return nullptr;
  if (graph.is(id, "conv2d"))
    return std::make_unique<ConvolutionStep>(graph, id, *convolution, cuda::Map::Identity);
  const std::optional<cuda::Map> map = find_cuda_epilogue(graph.attribute(id).text("activation"));
  if (!map) return nullptr;
  if (has_operand(graph, id, kResidual) && !graph.attribute(id).flag("y_last")) return nullptr;
  if (graph.is(id, "image_pooled_conv2d"))
    return std::make_unique<PooledConvolutionStep>(graph, id, *convolution, *map);
  if (graph.is(id, "image_summed_conv2d")) {
    const Type& weight = graph.type(graph.input(id, kShortcut.weight));
    CudaConvolution shortcut = *convolution;
    for (const Size& size : weight.shape)
      if (!size.is_constant()) return nullptr;
    shortcut.filters = weight.axis(0).constant();
    shortcut.inputs = weight.axis(1).constant();
    shortcut.window = shortcut_window(graph.attribute(id), weight);
    if (convolution->groups != 1) return nullptr;
    return std::make_unique<SummedConvolutionStep>(graph, id, *convolution, *map, shortcut);
  }
  return std::make_unique<ConvolutionStep>(graph, id, *convolution, *map);
}

const Register conv2d{CudaKernel{"conv2d", make_convolution}};
const Register image_conv2d{CudaKernel{"image_conv2d", make_convolution}};
const Register pooled{CudaKernel{"image_pooled_conv2d", make_convolution}};
const Register summed{CudaKernel{"image_summed_conv2d", make_convolution}};

}  // namespace
}  // namespace lathe::engine
