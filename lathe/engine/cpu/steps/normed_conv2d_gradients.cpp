#include <fmt/core.h>

#include <map>

#include "lathe/engine/cpu/channel_gradients.h"
#include "lathe/engine/cpu/filter_gradient.h"
#include "lathe/engine/cpu/lying_floats.h"
#include "lathe/engine/cpu/split_images.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/winograd.h"

namespace lathe::engine {
namespace {

constexpr std::size_t kWeight = 2, kY = 3;
// Of image_relu_normed_conv2d_gradients.
constexpr std::size_t kMore = 8, kFront = 9, kFrontSlope = 13;

// image_normed_conv2d_gradients: the gradients of a convolution and of the batch norm behind it,
// image by image. What goes through the norm is made for one or some of them, in a buffer that
// stays in the cache for both of the convolution's gradients. image_relu_normed_conv2d_gradients
// goes on through relu in front of it while they are there, and sums what the norm in front of that
// needs, image by image and then in their order.
class NormedConv2dGradientsStep final : public Step {
 public:
  NormedConv2dGradientsStep(GradientPart part, const AttributeReader& attributes, bool has_relu,
                            bool has_more)
      : part_(std::move(part)),
        tile_(static_cast<int>(attributes.integer("tile"))),
        has_relu_(has_relu),
        has_more_(has_more),
        rounds_(attributes.flag("rounded")) {}
  void set_precision(Precision precision) override { is_rounded_ = precision == Precision::Bf16; }
  Narrow narrow_input(std::size_t operand) const override {
    const bool is_image = operand < kWeight || operand == kY ||
                          (has_relu_ && (operand == kMore || operand == kFront));
    return rounds_ && is_image ? Narrow::Can : Narrow::No;
  }
  // The gradient of x is rounded, and relu lets it through or not.
  Narrow narrow_output(std::size_t result) const override {
    return rounds_ && result == 0 && !has_more_ ? Narrow::Anyway : Narrow::No;
  }
  void set_narrow(const std::vector<bool>& inputs, const std::vector<bool>& outputs) override {
    are_narrow_ = inputs;
    dx_is_narrow_ = outputs[0];
  }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    // As for the convolution itself.
    split_ = is_rounded_ || tile_ == 0 ? split_window_kernels(*parse_isa(kernels.isa), is_rounded_)
                                       : nullptr;
    if (split_ != nullptr) tile_ = 0;
    is_prepared_ = states[kWeight] != nullptr;
    if (is_prepared_) pack(kernels, states[kWeight]->data<float>().data());
  }
  std::int64_t layout_bytes() const override {
    return filters_.bytes() + in_parts_.bytes() + tile_filters_.bytes();
  }
  bool reads_state(std::size_t operand) const override { return operand != kWeight; }
  // An image of y has gone through the norm before that of dx is made, and a number of `more` has
  // been added when that of dx is written.
  std::vector<InPlace> in_place() const override {
    const bool is_as_y = dx_is_narrow_ == is_narrow(kY);
    return {{.output = 0, .input = is_as_y || !has_more_ ? kY : kMore}};
  }

  KernelChoice choice() const override {
    if (tile_ != 0) return {fmt::format("Winograd, tiles of {0}x{0}", tile_), {}};
    if (split_ == nullptr) return {"windows", {}};
    return {is_rounded_ ? "windows in bfloat16" : "windows in parts", {}};
  }

  void run_whole(const WholeCall& call) const override {
    const auto dims = [&](std::size_t operand) {
      return call.graph.type(call.graph.input(call.node, operand)).dims(call.symbols);
    };
    const auto floats = [&](std::size_t operand) {
      return reinterpret_cast<const float*>(call.inputs[operand]);
    };
    const auto lying = [&](std::size_t operand, std::int64_t from) {
      return call.inputs[operand] == nullptr
                 ? Lying{}
                 : behind(Lying{call.inputs[operand], is_narrow(operand)}, from);
    };
    const Images dy = images_of(dims(0), true), x = images_of(dims(1), true);
    const Convolution convolution =
        convolution_of(call.graph.attribute(call.node), x, dy, dims(kWeight));
    if (!is_prepared_) pack(call.kernels, floats(kWeight), call.parallel);
    ImageProduct product = part_.product;
    product.x.count = product.y.count = x.count;
    const Convolution backwards = backwards_of(product);
    own_.resize(call.scratch.size());
    const Written dx{call.outputs[0], dx_is_narrow_};
    const FilterGradient gradient(convolution, call.kernels, is_rounded_, tile_);
    std::vector<double> sums;
    if (has_relu_) sums.assign(static_cast<std::size_t>(x.count * 2 * x.channels), 0.0);
    const bool makes_x = call.inputs.size() > kFrontSlope;
    // Tiles make it where they read it.
    const bool reads_front = makes_x && tile_ != 0;
    const WinogradFront norm_in_front =
        reads_front
            ? WinogradFront{floats(kFront + 2), floats(kFrontSlope), floats(kFrontSlope + 1)}
            : WinogradFront{};
    const auto ahead_of = [&](std::int64_t first, std::int64_t most, bool is_early) {
      const std::int64_t count = std::min(most, x.count - first);
      LinesAhead ahead;
      const auto add = [&](std::size_t operand, std::int64_t size) {
        const Lying given = lying(operand, first * size);
        ahead.add(given.at, count * size * (given.is_narrow ? 2 : 4));
      };
      if (is_early) {
        add(0, dy.size());
        add(kY, dy.size());
        return ahead;
      }
      if (has_relu_) add(kFront, x.size()), add(kMore, x.size());
      if (!makes_x) add(1, x.size());
      return ahead;
    };
    const auto make_some = [&](std::int64_t first, std::int64_t count,
                               int thread) -> FilterGradient::Some {
      Floats& own = own_[static_cast<std::size_t>(thread)];
      AlignedBuffer& normalized = own.normalized;
      normalized.reserve(count * dy.size() * static_cast<std::int64_t>(sizeof(float)));
      const auto of_images = [&](std::size_t operand, std::int64_t size) {
        return as_floats(lying(operand, first * size), count * size, own.widened[operand]);
      };
      call.kernels.scale_channels_backward({.rows = count * dy.height * dy.width,
                                            .n = dy.channels,
                                            .dy = of_images(0, dy.size()),
                                            .x = of_images(kY, dy.size()),
                                            .center = floats(4),
                                            .factor = floats(5),
                                            .shift = floats(6),
                                            .slope = floats(7),
                                            .dx = normalized.floats()});
      const float* const front = has_relu_ ? of_images(kFront, x.size()) : nullptr;
      const float* const more = has_relu_ ? of_images(kMore, x.size()) : nullptr;
      if (makes_x && !reads_front)
        own.made.reserve(count * x.size() * static_cast<std::int64_t>(sizeof(float)));
      const float* const seen = reads_front ? front
                                : makes_x   ? own.made.floats()
                                            : of_images(1, x.size());
      // The gradient is made beside its place where that is of other numbers.
      const Written results = behind(dx, first * x.size());
      float* to = static_cast<float*>(results.at);
      if (dx_is_narrow_ || results.at == more) {
        own.gradient.reserve(count * x.size() * static_cast<std::int64_t>(sizeof(float)));
        to = own.gradient.floats();
      }
      const ImageOperands operands{.x = normalized.floats(), .y = to};
      AlignedBuffer& scratch = call.scratch[static_cast<std::size_t>(thread)];
      if (tile_ != 0)
        multiply_winograd_images(call.kernels, backwards, tile_filters_, operands, count, scratch,
                                 {}, ahead_of(first + count, count, true));
      for (std::int64_t i = 0; i < count; ++i) {
        const ImageOperands one{.x = operands.x + i * dy.size(), .y = operands.y + i * x.size()};
        if (split_ != nullptr)
          multiply_image_in_parts(call.kernels, *split_, product,
                                  *split_frame(product, is_rounded_), filters_, in_parts_, one,
                                  nullptr, scratch);
        else if (tile_ == 0)
          multiply_image(call.kernels, product, filters_, one, scratch);
        if (!has_relu_) continue;
        const std::int64_t at = i * x.size();
        // Relu of the norm in front.
        if (makes_x && !reads_front)
          call.kernels.scale_channels({.rows = x.height * x.width,
                                       .n = x.channels,
                                       .x = front + at,
                                       .center = floats(kFront + 2),
                                       .slope = floats(kFrontSlope),
                                       .bias = floats(kFrontSlope + 1),
                                       .residual = nullptr,
                                       .has_relu = true,
                                       .y = own.made.floats() + at});
        add_channel_products(call.kernels,
                             {.rows = x.height * x.width,
                              .n = x.channels,
                              .dy = one.y,
                              .more = more == nullptr ? nullptr : more + at,
                              .relu = reads_front ? nullptr : seen + at,
                              .slope = norm_in_front.slope,
                              .bias = norm_in_front.bias,
                              .g = one.y,
                              .x = front + at,
                              .center = floats(kFront + 2),
                              .sums = nullptr},
                             sums.data() + (first + i) * 2 * x.channels);
      }
      if (to != results.at) put_floats(to, count * x.size(), results);
      return {seen, normalized.floats(), norm_in_front, ahead_of(first + count, count, false)};
    };
    // All of that at once.
    const auto add_rounded = [&](SplitWindowGradientArgs weight, std::int64_t first, int thread) {
      const SplitFrame back = *split_frame(product, true);
      AlignedBuffer& scratch = call.scratch[static_cast<std::size_t>(thread)];
      scratch.reserve(split_->rounded_gradients_scratch_bytes(weight.frame, back, weight.images));
      weight.dy = lying(0, first * dy.size());
      weight.x = lying(makes_x ? kFront : 1, first * x.size());
      weight.scratch = scratch.data();
      RoundedGradientsArgs args{.weight = weight,
                                .back = back,
                                .norm = {.y = lying(kY, first * dy.size()),
                                         .center = floats(4),
                                         .factor = floats(5),
                                         .shift = floats(6),
                                         .slope = floats(7)},
                                .front = {},
                                .relu = {},
                                .filters = in_parts_.filters(),
                                .dx = behind(dx, first * x.size()),
                                .has_next = first + weight.images < x.count};
      if (makes_x)
        args.front = {.center = floats(kFront + 2),
                      .slope = floats(kFrontSlope),
                      .bias = floats(kFrontSlope + 1),
                      .residual = {},
                      .made = nullptr};
      if (has_relu_)
        args.relu = {.more = lying(kMore, first * x.size()),
                     .norm = lying(kFront, first * x.size()),
                     .center = floats(kFront + 2),
                     .sums = sums.data() + first * 2 * x.channels};
      return split_->add_rounded_gradients(args);
    };
    FilterGradient::AddImages add_images;
    if (is_rounded_ && split_ != nullptr && in_parts_.is_packed()) add_images = add_rounded;
    gradient.run(reinterpret_cast<float*>(call.outputs[1]), sums_, call.scratch,
                 call.parallel_by_rows, make_some, add_images);
    if (!has_relu_) return;
    const auto result = [&](std::size_t index) {
      return reinterpret_cast<float*>(call.outputs[index]);
    };
    put_channel_gradients({.parts = sums,
                           .n = x.channels,
                           .count = static_cast<double>(x.count * x.height * x.width),
                           .eps = call.graph.attribute(call.node).real("eps"),
                           .weight = floats(kFront + 1),
                           .variance = floats(kFront + 3)},
                          {result(2), result(3), result(4), result(5), result(6)});
  }

 private:
  bool is_narrow(std::size_t operand) const {
    return operand < are_narrow_.size() && are_narrow_[operand];
  }
  // The gradient of x as a convolution of dy with the filters turned around.
  static Convolution backwards_of(const ImageProduct& product) {
    const ImageProduct::Axis &rows = product.axes[0], &columns = product.axes[1];
    return {product.x,
            product.y,
            product.groups,
            {.kernel = {rows.taps, columns.taps},
             .strides = {1, 1},
             .pads = {-rows.first, -columns.first, -rows.first, -columns.first},
             .dilations = {1, 1}}};
  }
  void pack(const Kernels& kernels, const float* weight, const ParallelTasks& parallel = {}) const {
    if (tile_ != 0)
      return tile_filters_.pack_backward(kernels, tile_, part_.product.x.channels,
                                         part_.product.y.channels, weight, parallel);
    filters_.pack(kernels, part_.product, weight, part_.places);
    if (split_ != nullptr)
      in_parts_.pack(*split_, part_.product, kernels.gemm_grain().columns, filters_, is_rounded_);
  }

  GradientPart part_;  // of one image: windows are one pixel apart, so that there is one
  bool is_rounded_ = false, is_prepared_ = false;
  int tile_;  // of Winograd's products, or 0
  bool has_relu_, has_more_;
  bool rounds_;                   // known before `prepare`
  std::vector<bool> are_narrow_;  // operands
  bool dx_is_narrow_ = false;
  const SplitWindowKernels* split_ = nullptr;
  // A run is one at a time.
  mutable PackedFilters filters_;
  mutable SplitFilters in_parts_;
  mutable WinogradFilters tile_filters_;
  struct Floats {
    AlignedBuffer normalized, made, gradient;
    std::map<std::size_t, std::vector<float>> widened;  // operands
  };
  mutable std::vector<Floats> own_;  // one for each thread
  mutable AlignedBuffer sums_;
};

// Where windows are one pixel apart, and an image has enough to do for one thread.
std::unique_ptr<Step> make_gradients(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!value.is_none() && graph.type(value).dtype != DType::F32) return nullptr;
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
  if (parts.size() != 1 || !split_frame(parts.front().product, false)) return nullptr;
  const bool has_relu = graph.is(id, "image_relu_normed_conv2d_gradients");
  return std::make_unique<NormedConv2dGradientsStep>(std::move(parts.front()), graph.attribute(id),
                                                     has_relu,
                                                     has_relu && !graph.input(id, kMore).is_none());
}

const Register image_normed_conv2d_gradients{
    CpuKernel{"image_normed_conv2d_gradients", make_gradients}};
const Register image_relu_normed_conv2d_gradients{
    CpuKernel{"image_relu_normed_conv2d_gradients", make_gradients}};

}  // namespace
}  // namespace lathe::engine
