#include "lathe/engine/cpu/filter_gradient.h"
#include "lathe/engine/cpu/split_images.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

constexpr std::size_t kWeight = 2;

// image_normed_conv2d_gradients: the gradients of a convolution and of the batch norm behind it,
// image by image. What goes through the norm is made for one image at a time, in a buffer that
// stays in the cache for both of the convolution's gradients.
class NormedConv2dGradientsStep final : public Step {
 public:
  explicit NormedConv2dGradientsStep(GradientPart part) : part_(std::move(part)) {}
  void set_precision(Precision precision) override { is_rounded_ = precision == Precision::Bf16; }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    is_prepared_ = states[kWeight] != nullptr;
    if (is_prepared_) pack(kernels, states[kWeight]->data<float>().data());
  }
  std::int64_t layout_bytes() const override { return filters_.bytes() + in_parts_.bytes(); }
  bool reads_state(std::size_t operand) const override { return operand != kWeight; }

  void run_whole(const WholeCall& call) const override {
    const auto dims = [&](std::size_t operand) {
      return call.graph.type(call.graph.input(call.node, operand)).dims(call.symbols);
    };
    const auto floats = [&](std::size_t operand) {
      return reinterpret_cast<const float*>(call.inputs[operand]);
    };
    const Images dy = images_of(dims(0), true), x = images_of(dims(1), true);
    const Convolution convolution =
        convolution_of(call.graph.attribute(call.node), x, dy, dims(kWeight));
    if (!is_prepared_) pack(call.kernels, floats(kWeight));
    ImageProduct product = part_.product;
    product.x.count = product.y.count = x.count;
    const SplitFrame frame = *split_frame(product);
    const SplitWindowKernels* const split = split_window_kernels(*parse_isa(call.kernels.isa));
    normalized_.resize(call.scratch.size());
    auto* const dx = reinterpret_cast<float*>(call.outputs[0]);
    const FilterGradient gradient(convolution, call.kernels, is_rounded_);
    gradient.run(reinterpret_cast<float*>(call.outputs[1]), sums_, call.scratch, call.parallel,
                 [&](std::int64_t image, int thread) -> FilterGradient::Image {
                   AlignedBuffer& own = normalized_[static_cast<std::size_t>(thread)];
                   own.reserve(dy.size() * static_cast<std::int64_t>(sizeof(float)));
                   call.kernels.scale_channels_backward({.rows = dy.height * dy.width,
                                                         .n = dy.channels,
                                                         .dy = floats(0) + image * dy.size(),
                                                         .x = floats(3) + image * dy.size(),
                                                         .center = floats(4),
                                                         .factor = floats(5),
                                                         .shift = floats(6),
                                                         .slope = floats(7),
                                                         .dx = own.floats()});
                   const ImageOperands operands{.x = own.floats(), .y = dx + image * x.size()};
                   AlignedBuffer& scratch = call.scratch[static_cast<std::size_t>(thread)];
                   if (split != nullptr && in_parts_.is_packed())
                     multiply_image_in_parts(call.kernels, *split, product, frame, filters_,
                                             in_parts_, operands, floats(1) + image * x.size(),
                                             scratch);
                   else
                     multiply_image(call.kernels, product, filters_, operands, scratch);
                   return {floats(1) + image * x.size(), own.floats()};
                 });
  }

 private:
  void pack(const Kernels& kernels, const float* weight) const {
    filters_.pack(kernels, part_.product, weight, part_.places);
    if (const SplitWindowKernels* const split = split_window_kernels(*parse_isa(kernels.isa)))
      in_parts_.pack(*split, part_.product, kernels.gemm_grain().columns, filters_, is_rounded_);
  }

  GradientPart part_;  // of one image: windows are one pixel apart, so that there is one
  bool is_rounded_ = false, is_prepared_ = false;
  // A run is one at a time.
  mutable PackedFilters filters_;
  mutable SplitFilters in_parts_;
  mutable std::vector<AlignedBuffer> normalized_;  // one for each thread
  mutable AlignedBuffer sums_;
};

// Where windows are one pixel apart, and an image has enough to do for one thread.
std::unique_ptr<Step> make_gradients(const Graph& graph, NodeId id) {
  for (std::size_t i = 0; i < graph.inputs(id).size(); ++i)
    if (graph.type(graph.input(id, i)).dtype != DType::F32) return nullptr;
  for (const std::size_t operand : {0, 1, 2}) {
    const Type& type = graph.type(graph.input(id, operand));
    for (std::size_t axis = operand == 2 ? 0 : 1; axis < type.rank(); ++axis)
      if (!type.axis(axis).is_constant()) return nullptr;
  }
  const auto dims = [&](std::size_t operand) {
    std::vector<std::int64_t> sizes;
    for (const Size& size : graph.type(graph.input(id, operand)).shape)
      sizes.push_back(size.is_constant() ? size.constant() : 1);
    return sizes;
  };
  const Convolution convolution = convolution_of(graph.attribute(id), images_of(dims(1), true),
                                                 images_of(dims(0), true), dims(kWeight));
  std::vector<GradientPart> parts = gradient_parts(convolution);
  if (parts.size() != 1 || !split_frame(parts.front().product)) return nullptr;
  return std::make_unique<NormedConv2dGradientsStep>(std::move(parts.front()));
}

const Register image_normed_conv2d_gradients{
    CpuKernel{"image_normed_conv2d_gradients", make_gradients}};

}  // namespace
}  // namespace lathe::engine
