#include <algorithm>

#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/filter_gradient.h"
#include "lathe/engine/cpu/phased_convolution.h"
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
  void set_precision(Precision precision) override { is_rounded_ = precision == Precision::Bf16; }
  void run_whole(const WholeCall& call) const override {
    const char* const op = "conv2d_input_gradient";
    const Images dy =
        images_of(dims_of(call, call.graph.input(call.node, 0)), flag_of(call, op, "dy_last"));
    const Images dx = images_of(dims_of(call, {call.node, 0}), flag_of(call, op, "dx_last"));
    const Convolution convolution = convolution_of(call.graph.attribute(call.node), dx, dy,
                                                   dims_of(call, call.graph.input(call.node, 1)));
    const SplitWindowKernels* const split =
        split_window_kernels(*parse_isa(call.kernels.isa), is_rounded_);
    if (is_rounded_ && split != nullptr && PhasedConvolution::suits(convolution) &&
        run_phased(call, PhasedConvolution(convolution), *split))
      return;
    const std::vector<GradientPart> parts = gradient_parts(convolution);
    filters_.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const GradientPart& part = parts[i];
      auto& [filters, in_parts, cut] = filters_[i];
      filters.pack(call.kernels, part.product, floats_of(call, 1), part.places);
      const ImageOperands operands{.x = floats_of(call, 0),
                                   .y = reinterpret_cast<float*>(call.outputs[0])};
      const std::optional<SplitFrame> frame =
          split != nullptr ? split_frame(part.product, is_rounded_) : std::nullopt;
      if (frame) {
        in_parts.pack(*split, part.product, call.kernels.gemm_grain().columns, filters,
                      is_rounded_);
        multiply_images_in_parts(call.kernels, *split, part.product, *frame, filters, in_parts,
                                 operands, call.scratch, call.parallel_by_rows);
        continue;
      }
      multiply_images(call.kernels, part.product, filters, operands, call.scratch, call.parallel,
                      cut);
    }
  }

 private:
  // Windows more than a pixel apart, image by image; false where their channels do not suit.
  bool run_phased(const WholeCall& call, const PhasedConvolution& phased,
                  const SplitWindowKernels& split) const {
    const Convolution& convolution = phased.convolution();
    const GradientPart part = gradient_parts(convolution).front();
    const std::optional<SplitFrame> frame = split_frame(part.product, true);
    if (!frame) return false;
    filters_.resize(1);
    auto& [filters, in_parts, cut] = filters_.front();
    filters.pack(call.kernels, part.product, phased.put_weight(floats_of(call, 1)).data(),
                 part.places);
    in_parts.pack(split, part.product, call.kernels.gemm_grain().columns, filters, true);
    made_.resize(call.scratch.size());
    const std::int64_t size = images_of(dims_of(call, {call.node, 0}), true).size();
    call.parallel_by_rows(convolution.x.count, [&](std::int64_t image, int thread) {
      AlignedBuffer& own = made_[static_cast<std::size_t>(thread)];
      own.reserve(convolution.x.size() * static_cast<std::int64_t>(sizeof(float)));
      const float* const dy = floats_of(call, 0) + image * convolution.y.size();
      const ImageOperands operands{.x = dy, .y = own.floats()};
      AlignedBuffer& scratch = call.scratch[static_cast<std::size_t>(thread)];
      multiply_image_in_parts(call.kernels, split, part.product, *frame, filters, in_parts,
                              operands, nullptr, scratch);
      phased.take_image(own.floats(), reinterpret_cast<float*>(call.outputs[0]) + image * size);
    });
    return true;
  }

  bool is_rounded_ = false;
  // Of each part, in memory that the next run finds: a run is one at a time.
  struct Filters {
    PackedFilters floats;
    SplitFilters in_parts;
    KnownCut cut;
  };
  mutable std::vector<Filters> filters_;
  mutable std::vector<AlignedBuffer> made_;  // one for each thread
};

class Conv2dWeightGradientStep final : public Step {
 public:
  void set_precision(Precision precision) override { is_rounded_ = precision == Precision::Bf16; }
  void run_whole(const WholeCall& call) const override {
    const char* const op = "conv2d_weight_gradient";
    const Images dy =
        images_of(dims_of(call, call.graph.input(call.node, 0)), flag_of(call, op, "dy_last"));
    const Images x =
        images_of(dims_of(call, call.graph.input(call.node, 1)), flag_of(call, op, "x_last"));
    const Convolution c =
        convolution_of(call.graph.attribute(call.node), x, dy, dims_of(call, {call.node, 0}));
    const float* const images = floats_of(call, 1);
    const float* const gradients = floats_of(call, 0);
    auto* const result = reinterpret_cast<float*>(call.outputs[0]);
    if (is_rounded_ && PhasedConvolution::suits(c)) {
      const PhasedConvolution phased(c);
      const Images& made = phased.convolution().x;
      made_.resize(call.scratch.size());
      std::vector<float> all(static_cast<std::size_t>(phased.convolution().num_weights()));
      FilterGradient(phased.convolution(), call.kernels, true, 0)
          .run(all.data(), sums_, call.scratch, call.parallel_by_rows,
               [&](std::int64_t first, std::int64_t count, int thread) {
                 AlignedBuffer& own = made_[static_cast<std::size_t>(thread)];
                 own.reserve(count * made.size() * static_cast<std::int64_t>(sizeof(float)));
                 for (std::int64_t i = 0; i < count; ++i)
                   phased.put_image(images + (first + i) * x.size(),
                                    own.floats() + i * made.size());
                 return FilterGradient::Some{own.floats(), gradients + first * dy.size()};
               });
      return phased.take_weight(all.data(), result);
    }
    const bool is_plain = call.graph.is(call.node, op);
    const FilterGradient gradient(
        c, call.kernels, is_rounded_,
        is_plain ? 0 : static_cast<int>(call.graph.attribute(call.node).integer("tile")));
    gradient.run(
        result, sums_, call.scratch, call.parallel_by_rows,
        [&](std::int64_t first, std::int64_t, int) {
          return FilterGradient::Some{images + first * x.size(), gradients + first * dy.size()};
        });
  }

 private:
  bool is_rounded_ = false;
  mutable AlignedBuffer sums_;               // a run is one at a time
  mutable std::vector<AlignedBuffer> made_;  // one for each thread
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
