#include <algorithm>

#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/split_images.h"
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
    const SplitWindowKernels* const split = split_window_kernels(*parse_isa(call.kernels.isa));
    const std::vector<GradientPart> parts = gradient_parts(convolution);
    filters_.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const GradientPart& part = parts[i];
      auto& [filters, in_parts, cut] = filters_[i];
      filters.pack(call.kernels, part.product, floats_of(call, 1), part.places);
      const ImageOperands operands{.x = floats_of(call, 0),
                                   .y = reinterpret_cast<float*>(call.outputs[0])};
      const std::optional<SplitFrame> frame =
          split != nullptr ? split_frame(part.product) : std::nullopt;
      if (frame) in_parts.pack(*split, part.product, call.kernels.gemm_grain().columns, filters);
      if (frame && in_parts.is_packed()) {
        multiply_images_in_parts(call.kernels, *split, part.product, *frame, filters, in_parts,
                                 operands, call.scratch, call.parallel);
        continue;
      }
      multiply_images(call.kernels, part.product, filters, operands, call.scratch, call.parallel,
                      cut);
    }
  }

 private:
  // Of each part, in memory that the next run finds: a run is one at a time.
  struct Filters {
    PackedFilters floats;
    SplitFilters in_parts;
    KnownCut cut;
  };
  mutable std::vector<Filters> filters_;
};

// dy[pixels, filters] transposed times the lines of the windows, image by image. Summed by parts
// of the batch whose number follows from its size, and then in their order.
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
    const Sums sums(c, split_window_kernels(*parse_isa(call.kernels.isa)));
    const std::int64_t parts = num_parts(x.count, c.num_weights());
    const std::int64_t total_floats = parts * c.num_weights();
    // The parts' sums lie in front of what the first thread needs for itself.
    for (std::size_t thread = 0; thread < call.scratch.size(); ++thread)
      call.scratch[thread].reserve((sums.scratch_floats() + (thread == 0 ? total_floats : 0)) *
                                   static_cast<std::int64_t>(sizeof(float)));
    float* const totals = call.scratch[0].floats();
    call.parallel(parts, [&](std::int64_t part, int thread) {
      const std::int64_t first = part * x.count / parts, end = (part + 1) * x.count / parts;
      float* const total = totals + part * c.num_weights();
      if (first == end) std::fill_n(total, c.num_weights(), 0.0f);
      for (std::int64_t image = first; image < end; ++image)
        sums.add(call.kernels, floats_of(call, 1) + image * x.size(),
                 floats_of(call, 0) + image * dy.size(),
                 call.scratch[static_cast<std::size_t>(thread)].floats() +
                     (thread == 0 ? total_floats : 0),
                 total, image > first);
    });
    sums.put(call.kernels, totals, parts, reinterpret_cast<float*>(call.outputs[0]), call.parallel);
  }

 private:
  // More parts even out what else the cores do, while they are small.
  static std::int64_t num_parts(std::int64_t images, std::int64_t weights) {
    std::int64_t most = 64;
    while (most > 16 && most * weights > kMostFloats) most /= 2;
    return std::clamp<std::int64_t>(images, 1, most);
  }
  static constexpr std::int64_t kMostFloats = std::int64_t{5} << 18;

  // The gradient of a weight [O, kh, kw, C/groups]: taps before channels, as windows have them.
  class Sums {
   public:
    Sums(const Convolution& convolution, const SplitWindowKernels* split)
        : c_(convolution),
          split_(split),
          frame_(split != nullptr ? split_frame(forward_product(convolution)) : std::nullopt),
          columns_((c_.y.width - 1) * c_.window.strides[1] +
                   (c_.window.kernel[1] - 1) * c_.window.dilations[1] + 1),
          lines_((c_.y.height - 1) * c_.window.strides[0] +
                 (c_.window.kernel[0] - 1) * c_.window.dilations[0] + 1) {}

    std::int64_t scratch_floats() const {
      const std::int64_t floats =
          lines_ * columns_ * c_.x.channels + (c_.y.is_last ? 0 : c_.y.size());
      if (!frame_) return floats;
      constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
      return std::max(floats, split_->gradient_scratch_bytes(*frame_, c_.y.channels) / kFloat);
    }

    void add(const Kernels& kernels, const float* x, const float* dy, float* scratch, float* total,
             bool accumulate) const {
      // In parts, but where a number is too large for it.
      if (frame_ && split_->add_gradient({.frame = *frame_,
                                          .n = c_.y.channels,
                                          .x = x,
                                          .dy = dy,
                                          .dw = total,
                                          .dw_stride = c_.x.channels * c_.taps(),
                                          .accumulate = accumulate,
                                          .scratch = scratch}))
        return;
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
            kernels.convolve_gradient(
                {.lines = c_.y.height,
                 .pixels = c_.y.width,
                 .n = filters,
                 .k = length,
                 .dy = dy + group * filters,
                 .dy_line = c_.y.width * c_.y.channels,
                 .dy_step = c_.y.channels,
                 .x = scratch +
                      (p * c_.window.dilations[0] * columns_ + q * c_.window.dilations[1]) *
                          c_.x.channels +
                      group * channels,
                 .x_line = c_.window.strides[0] * columns_ * c_.x.channels,
                 .x_step = c_.window.strides[1] * c_.x.channels,
                 .dw = total + group * filters * depth + (p * pieces + q) * length,
                 .dw_stride = depth,
                 .accumulate = accumulate});
    }

    // Adds the parts and turns each filter's [taps, channels] around.
    void put(const Kernels& kernels, const float* totals, std::int64_t parts, float* result,
             const auto& parallel) const {
      const std::int64_t channels = c_.group_channels(), taps = c_.taps();
      const std::int64_t depth = channels * taps;
      parallel(c_.y.channels, [&](std::int64_t filter, int) {
        std::vector<float> sums(static_cast<std::size_t>(depth), 0.0f);
        kernels.sum_rows_accumulate(totals + filter * depth, parts, depth, c_.num_weights(),
                                    sums.data());
        kernels.transpose_matrix({.rows = taps,
                                  .columns = channels,
                                  .x = sums.data(),
                                  .x_stride = channels,
                                  .y = result + filter * depth,
                                  .y_stride = taps});
      });
    }

   private:
    const Convolution& c_;
    const SplitWindowKernels* split_;
    std::optional<SplitFrame> frame_;  // where it can be computed in parts
    std::int64_t columns_, lines_;     // of an image with its padding
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
