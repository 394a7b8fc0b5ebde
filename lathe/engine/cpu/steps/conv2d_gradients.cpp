#include <algorithm>

#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// The gradients of conv2d, and of images whose channels lie side by side.

bool flag_of(const WholeCall& call, const char* op, const char* flag) {
  return !call.graph.is(call.node, op) && call.graph.attribute(call.node).flag(flag);
}

std::vector<std::int64_t> dims_of(const WholeCall& call, Value value) {
  return call.graph.type(value).dims(call.symbols);
}

const float* floats_of(const WholeCall& call, std::size_t operand) {
  return reinterpret_cast<const float*>(call.inputs[operand]);
}

// Windows of dy, times the filters turned around.
class Conv2dInputGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const char* const op = "conv2d_input_gradient";
    const Images dy =
        images_of(dims_of(call, call.graph.input(call.node, 0)), flag_of(call, op, "dy_last"));
    const Images dx = images_of(dims_of(call, {call.node, 0}), flag_of(call, op, "dx_last"));
    const Convolution convolution = convolution_of(call.graph.attribute(call.node), dx, dy,
                                                   dims_of(call, call.graph.input(call.node, 1)));
    for (const GradientPart& part : gradient_parts(convolution)) {
      PackedFilters filters;
      filters.pack(call.kernels, part.product, floats_of(call, 1), part.places);
      multiply_images(call.kernels, part.product, filters,
                      {.x = floats_of(call, 0), .y = reinterpret_cast<float*>(call.outputs[0])},
                      call.scratch, call.parallel);
    }
  }
};

// dy[pixels, filters] transposed times the lines of the windows, row by row of results. Summed by
// parts of the batch whose number follows from its size, and then in their order.
class Conv2dWeightGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const char* const op = "conv2d_weight_gradient";
    const Images dy =
        images_of(dims_of(call, call.graph.input(call.node, 0)), flag_of(call, op, "dy_last"));
    const Images x =
        images_of(dims_of(call, call.graph.input(call.node, 1)), flag_of(call, op, "x_last"));
    const Convolution c =
        convolution_of(call.graph.attribute(call.node), x, dy, dims_of(call, {call.node, 0}));
    const Sums sums(c);
    const std::int64_t parts = std::clamp<std::int64_t>(x.count, 1, kMostParts);
    for (AlignedBuffer& buffer : call.scratch)
      buffer.reserve(sums.scratch_floats() * static_cast<std::int64_t>(sizeof(float)));
    std::vector<float> totals(static_cast<std::size_t>(parts * c.num_weights()), 0.0f);
    call.parallel(parts, [&](std::int64_t part, int thread) {
      for (std::int64_t image = part * x.count / parts; image < (part + 1) * x.count / parts;
           ++image)
        sums.add(call.kernels, floats_of(call, 1) + image * x.size(),
                 floats_of(call, 0) + image * dy.size(),
                 call.scratch[static_cast<std::size_t>(thread)].floats(),
                 totals.data() + part * c.num_weights());
    });
    sums.put(totals, parts, reinterpret_cast<float*>(call.outputs[0]), call.parallel);
  }

 private:
  static constexpr std::int64_t kMostParts = 16;

  // The gradient of a weight [O, kh, kw, C/groups]: taps before channels, as windows have them.
  class Sums {
   public:
    explicit Sums(const Convolution& convolution)
        : c_(convolution),
          columns_((c_.y.width - 1) * c_.window.strides[1] +
                   (c_.window.kernel[1] - 1) * c_.window.dilations[1] + 1),
          lines_((c_.y.height - 1) * c_.window.strides[0] +
                 (c_.window.kernel[0] - 1) * c_.window.dilations[0] + 1) {}

    std::int64_t scratch_floats() const {
      return lines_ * columns_ * c_.x.channels + (c_.y.is_last ? 0 : c_.y.size());
    }

    void add(const Kernels& kernels, const float* x, const float* dy, float* scratch,
             float* total) const {
      for (std::int64_t line = 0; line < lines_; ++line)
        copy_line(kernels, c_.x, x, line - c_.window.pads[0], -c_.window.pads[1], columns_,
                  scratch + line * columns_ * c_.x.channels);
      if (!c_.y.is_last) {
        float* const turned = scratch + lines_ * columns_ * c_.x.channels;
        const std::int64_t plane = c_.y.height * c_.y.width;
        kernels.transpose_matrix({.rows = c_.y.channels,
                                  .columns = plane,
                                  .x = dy,
                                  .x_stride = plane,
                                  .y = turned,
                                  .y_stride = c_.y.channels});
        dy = turned;
      }
      const bool is_split = c_.groups > 1 || c_.window.dilations[1] != 1;
      const std::int64_t pieces = is_split ? c_.window.kernel[1] : 1;
      const std::int64_t channels = c_.group_channels();
      const std::int64_t length = is_split ? channels : channels * c_.window.kernel[1];
      const std::int64_t depth = channels * c_.taps(), filters = c_.group_filters();
      for (std::int64_t group = 0; group < c_.groups; ++group)
        for (std::int64_t p = 0; p < c_.window.kernel[0]; ++p)
          for (std::int64_t q = 0; q < pieces; ++q)
            for (std::int64_t row = 0; row < c_.y.height; ++row)
              kernels.weight_gradient(
                  {.rows = c_.y.width,
                   .n = filters,
                   .k = length,
                   .dy = dy + row * c_.y.width * c_.y.channels + group * filters,
                   .dy_stride = c_.y.channels,
                   .x = scratch +
                        ((row * c_.window.strides[0] + p * c_.window.dilations[0]) * columns_ +
                         q * c_.window.dilations[1]) *
                            c_.x.channels +
                        group * channels,
                   .x_stride = c_.window.strides[1] * c_.x.channels,
                   .dw = total + group * filters * depth + (p * pieces + q) * length,
                   .dw_stride = depth,
                   .accumulate = true});
    }

    void put(const std::vector<float>& totals, std::int64_t parts, float* result,
             const auto& parallel) const {
      const std::int64_t channels = c_.group_channels(), taps = c_.taps();
      parallel(c_.y.channels, [&](std::int64_t filter, int) {
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for (std::int64_t channel = 0; channel < channels; ++channel) {
            const float* from = totals.data() + (filter * taps + tap) * channels + channel;
            float sum = 0;
            for (std::int64_t part = 0; part < parts; ++part, from += c_.num_weights())
              sum += *from;
            result[(filter * channels + channel) * taps + tap] = sum;
          }
      });
    }

   private:
    const Convolution& c_;
    std::int64_t columns_, lines_;  // of an image with its padding
  };
};

template <typename GradientStep>
CpuKernel gradient_kernel(std::string op) {
  return {std::move(op), [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
            if (graph.types(id)[0].dtype != DType::F32) return nullptr;
            return std::make_unique<GradientStep>();
          }};
}

const Register input_gradient{gradient_kernel<Conv2dInputGradientStep>("conv2d_input_gradient")};
const Register weight_gradient{gradient_kernel<Conv2dWeightGradientStep>("conv2d_weight_gradient")};
const Register image_input_gradient{
    gradient_kernel<Conv2dInputGradientStep>("image_conv2d_input_gradient")};
const Register image_weight_gradient{
    gradient_kernel<Conv2dWeightGradientStep>("image_conv2d_weight_gradient")};

}  // namespace
}  // namespace lathe::engine
